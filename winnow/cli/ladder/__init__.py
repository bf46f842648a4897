"""What each lever of classifying text on CPUs is worth: from BERT-base as it comes to here.

The levers are those of Le and Kaehler, "How We Scaled Bert To Serve 1+ Billion Daily Requests on
CPUs" (Roblox, 2020), and what this project adds to them.
"""
