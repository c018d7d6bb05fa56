"""Which pods do objects of kinds that are not Kubernetes' own describe, and what do their controllers add?"""
