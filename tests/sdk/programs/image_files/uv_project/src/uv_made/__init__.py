WORD = "made by uv"
