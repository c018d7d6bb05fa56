"""Kubernetes' own rules, pure: each module is named after the upstream package it mirrors."""
