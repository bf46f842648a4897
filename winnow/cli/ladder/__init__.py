"""`winnow bench ladder`: the effect of each lever of classifying text on CPUs, from BERT-base on.

The levers are those of Le and Kaehler, "How We Scaled Bert To Serve 1+ Billion Daily Requests on
CPUs" (Roblox, 2020), and this project's own.
"""
