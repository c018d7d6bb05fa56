"""SPR5xx: what does a workload lose with a node, a zone or another domain, whatever it declares?"""
