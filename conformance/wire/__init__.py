"""The wire machine: a broker asked over its real protocol, every answer compared with the abstract model."""
