"""The claims about messages, tables and links, each declared once as a fold over records."""
