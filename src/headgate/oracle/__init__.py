"""The naive evaluators, one file a family, straight from the semantics: slow, and obviously right."""
