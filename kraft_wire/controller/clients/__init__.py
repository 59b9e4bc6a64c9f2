"""The APIs of the cluster's clients: their quotas, and the credentials by which they are known."""
