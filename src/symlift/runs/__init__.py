"""Run folders and files of data: what was asked, what was found, and enough with it to draw it and to go on after a kill."""
