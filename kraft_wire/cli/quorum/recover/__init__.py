"""The commands ``kraft-wire quorum recover``: collect, plan, apply, verify."""
