"""Programs that run the plugin: pre-commit, GitHub, GitLab, Argo CD and a CronJob, by the examples of docs/ci.md."""
