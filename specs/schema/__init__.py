"""Definition of body classes: fields, shapes of values, and rules between fields."""
