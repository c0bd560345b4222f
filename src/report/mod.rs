//! Findings become a view of plain strings, and the view becomes Markdown. No arithmetic.
