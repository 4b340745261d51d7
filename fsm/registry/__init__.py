"""Who is where: records, addresses, allocation, changes told between registries."""
