"""Pure policies of the front node. They have no I/O, no asyncio and no clock of their own."""
