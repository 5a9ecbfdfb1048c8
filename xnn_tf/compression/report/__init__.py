"""What a compression did, as JSON and as one page."""
