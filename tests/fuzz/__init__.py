"""Fuzzing: input that nobody would write, through the whole program, with whatever it must never do watched for."""
