"""How to reach a cluster and log in: kubeconfig, exec plugins, OIDC, proxies, TLS. It may import `sources.decode`."""
