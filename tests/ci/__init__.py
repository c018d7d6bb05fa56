"""What runs the tool for others: pre-commit, GitHub, GitLab, Argo CD, a CronJob; held to what docs/ci.md shows."""
