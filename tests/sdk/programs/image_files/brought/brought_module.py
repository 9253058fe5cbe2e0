WORD = "brought along"
