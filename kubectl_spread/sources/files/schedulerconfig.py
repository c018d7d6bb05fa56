"""The configuration file of kube-scheduler: how each of its schedulers treats spread constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from kubectl_spread.errors import CombinedError, DecodeError, Position, SourceError
from kubectl_spread.kube.api.field import FieldError as Invalid
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.types import Message
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.kube.scheduler.configuration import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PodTopologySpreadArgs,
    Profile,
)
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_documents import Record
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError, Path
from kubectl_spread.sources.decode.protobuf import declaration
from kubectl_spread.sources.files import inputs

T = TypeVar("T", bound=Message)

_ARGS_KIND: Final = f"{configuration.PLUGIN}Args"


def read(path: str) -> Mapping[str, Profile]:
    """Return the treatment of spread constraints by each scheduler in a KubeSchedulerConfiguration, by scheduler name.

    An error about spread constraints for which kube-scheduler would refuse the file is reported in its words. Only the
    first document is read, as by kube-scheduler.

    Args:
        path: A file, or ``-``, in YAML or JSON.

    Raises:
        CombinedError: All errors, by line; each names its line and field.
    """
    source = inputs.source_name(path)
    try:
        record = next(inputs.records(path), None)
    except SourceError as error:
        raise CombinedError([error]) from error
    if record is None:
        raise CombinedError([SourceError(f"{source}: a {configuration.KIND} is expected, but the file is empty")])
    reader = _Reader(record, source)
    profiles = reader.profiles()
    if reader.errors:
        reader.errors.sort(key=lambda error: error.position.line or 0)
        raise CombinedError(reader.errors)
    return profiles


class _Reader(msgspec.Struct, frozen=True):
    record: Record
    source: str
    errors: list[DecodeError] = msgspec.field(default_factory=list)

    def profiles(self) -> dict[str, Profile]:
        """Return the profiles by name; they are incomplete if the document has faults."""
        config = self._decode(self.record.content, KubeSchedulerConfiguration, ())
        if config is None or not self._has_header(config, configuration.KIND, (), required=True):
            return {}
        # Without profiles there is one with all defaults.
        profiles = [
            self._decode(raw, KubeSchedulerProfile, ("profiles", index))
            or KubeSchedulerProfile(scheduler_name=f"profiles[{index}]")
            for index, raw in enumerate(config.profiles)
        ] or [KubeSchedulerProfile()]
        names = configuration.scheduler_names(profiles)
        return {
            name: self._profile(profile, names, index)
            for index, (name, profile) in enumerate(zip(names, profiles, strict=True))
        }

    def _has_header(
        self, decoded: KubeSchedulerConfiguration | PodTopologySpreadArgs, kind: str, path: Path, *, required: bool
    ) -> bool:
        expected = {"apiVersion": configuration.API_VERSION, "kind": kind}
        header = {"apiVersion": decoded.api_version, "kind": decoded.kind}
        for name, value in header.items():
            if not value and required:
                self._fault((*path, name), "is missing")
            elif value and value != expected[name]:
                self._fault((*path, name), f"is {value}, not {expected[name]}")
        return header == expected

    def _profile(self, written: KubeSchedulerProfile, names: Sequence[str], index: int) -> Profile:
        args = PodTopologySpreadArgs()
        self._refuse(configuration.plugin_config_errors(written, index))
        for number, config in enumerate(written.plugin_config):
            if config.name == configuration.PLUGIN:
                path = ("profiles", index, "pluginConfig", number, "args")
                args = self._args(config.args, path)
        self._refuse(configuration.profile_errors(names, index))
        return configuration.profile(written, args)

    def _args(self, raw: msgspec.Raw, path: Path) -> PodTopologySpreadArgs:
        args = self._decode(raw, PodTopologySpreadArgs, path) or PodTopologySpreadArgs()
        self._has_header(args, _ARGS_KIND, path, required=False)
        self._refuse(configuration.args_errors(args, FieldPath(path)))
        return args

    def _decode(self, content: Json, type_: type[T], path: Path) -> T | None:
        """Decode a part of the document; None where it is not an object, or a field has the wrong type."""
        body = b"{}" if json_objects.is_null(content) else content
        try:
            decoded = json_objects.decode(body, type_)
            for unknown in _unknown(json_objects.values(body), type_, path):
                self._fault(unknown, "unknown field")
        except MalformedFieldError as error:
            self._fault((*path, *error.path), error.problem)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._fault(path, str(error))
        else:
            return decoded
        return None

    def _refuse(self, errors: Iterator[Invalid]) -> None:
        for error in errors:
            self._fault(error.path, error.message.removeprefix(f"{error.path}: "))

    def _fault(self, path: Path, problem: str) -> None:
        position = Position(self.source, self.record.line_of(path))
        self.errors.append(DecodeError(position, configuration.KIND, json_objects.format_path(path), problem))


def _unknown(value: object, type_: type[Message], path: Path) -> Iterator[Path]:
    """Yield the paths of fields that are not declared, which kube-scheduler refuses."""
    declared = {field.json_name: field for field in declaration.fields(type_)}
    for name, field in value.items() if isinstance(value, dict) else ():
        field_path = (*path, name)
        if name not in declared:
            yield field_path
        elif issubclass(declared[name].type, Message):
            is_list = isinstance(field, list)
            for index, element in enumerate(field if is_list else [field]):
                yield from _unknown(element, declared[name].type, (*field_path, index) if is_list else field_path)
