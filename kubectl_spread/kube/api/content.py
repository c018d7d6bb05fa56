"""Content: the API server's errors on label keys, label values and DNS labels.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/api/validate/content,
IsLabelKey, IsLabelValue and IsDNS1123Label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_NAME_FORMAT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_HELP: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORMAT}')"
)
_PREFIXED: Final = f"{_NAME_HELP} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
LABEL_KEY_HELP: Final = f"a valid label key {_PREFIXED}"
QUALIFIED_NAME_HELP: Final = f"a qualified name {_PREFIXED}"
_VALUE_HELP: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_NAME_FORMAT})?')"
)
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_LABEL_HELP: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_DNS_LABEL}')"
)
DNS_SUBDOMAIN_HELP: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_DNS_SUBDOMAIN}')"
)
_NAME_MAX: Final = 63
_DNS_SUBDOMAIN_MAX: Final = 253


@lru_cache(maxsize=4096)
def label_key_problems(key: str) -> tuple[str, ...]:
    """Return the problems of a label key: an optional DNS subdomain prefix, "/", and a name."""
    return tuple(_label_key_problems(key))


def _label_key_problems(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield LABEL_KEY_HELP
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        if len(prefix.encode()) > _DNS_SUBDOMAIN_MAX:
            yield f"prefix part must be no more than {_DNS_SUBDOMAIN_MAX} bytes"
        if not re.fullmatch(_DNS_SUBDOMAIN, prefix):
            yield f"prefix part {DNS_SUBDOMAIN_HELP}"
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > _NAME_MAX:
        yield f"name part must be no more than {_NAME_MAX} bytes"
    if not re.fullmatch(_NAME_FORMAT, name):
        yield f"name part {_NAME_HELP}"


@lru_cache(maxsize=4096)
def label_value_problems(value: str) -> tuple[str, ...]:
    """Return the problems of a label value; "" has none."""
    return tuple(_label_value_problems(value))


def _label_value_problems(value: str) -> Iterator[str]:
    if len(value.encode()) > _NAME_MAX:
        yield f"must be no more than {_NAME_MAX} bytes"
    if not re.fullmatch(f"({_NAME_FORMAT})?", value):
        yield _VALUE_HELP


def dns_label_problems(name: str) -> Iterator[str]:
    """Yield the problems of a namespace's name."""
    if len(name.encode()) > _NAME_MAX:
        yield f"must be no more than {_NAME_MAX} characters"
    if re.fullmatch(_DNS_LABEL, name):
        return
    yield "must not contain dots" if re.fullmatch(_DNS_SUBDOMAIN, name) else _DNS_LABEL_HELP


def is_object_name(name: str) -> bool:
    """Tell whether the API server accepts a name of a pod or workload, as IsDNS1123Subdomain does."""
    return len(name) <= _DNS_SUBDOMAIN_MAX and re.fullmatch(_DNS_SUBDOMAIN, name) is not None
