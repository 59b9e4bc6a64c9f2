"""Check what peers ask: any node, or anybody who pretends to be one."""
