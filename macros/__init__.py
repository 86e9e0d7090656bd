"""From numbers to marks on a page. No arithmetic beyond formatting."""
