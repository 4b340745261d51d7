"""The parts that all commands share: options, output, exit status, errors as sentences."""
