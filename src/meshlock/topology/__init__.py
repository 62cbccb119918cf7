"""Who is linked to whom, and when: graphs, their files, and how nodes move."""
