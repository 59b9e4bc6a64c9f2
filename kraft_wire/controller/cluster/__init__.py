"""The APIs of the cluster as a whole: its versions, its controllers and its producer ids."""
