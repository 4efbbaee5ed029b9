"""Reading tickets out of delimited text files: ``source`` finds rows, ``mapping`` their meaning."""
