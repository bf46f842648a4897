"""The MCP server of a front: `/mcp` on its HTTP port."""
