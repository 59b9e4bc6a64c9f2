"""Check the invariants that must hold in every run."""
