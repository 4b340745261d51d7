"""Policy language: vocabulary, reader of documents, and decisions on messages (POL-02..POL-15)."""
