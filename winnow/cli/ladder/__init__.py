"""`winnow bench classification`: how much each lever speeds up text classification on CPUs.

The levers are those of Le and Kaehler, "How We Scaled Bert To Serve 1+ Billion Daily Requests on
CPUs" (Roblox, 2020), and this project's own.
"""
