"""Fields, shapes and rules of bodies, and JSON Schemas made from them."""
