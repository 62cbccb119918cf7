"""The page: look at any run in a browser, drive one by hand. Everything comes from this machine."""
