"""A server of the Model Context Protocol (MCP): tools and resources for agents.

It needs the extra `mcp`, whose package only this room and the two that run the server import.
"""
