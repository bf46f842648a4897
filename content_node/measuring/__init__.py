"""What a content node costs on this machine: finding passages, reading, memory, disk, building."""
