"""From changed shards to published tallies: merging, outbox, handover, receipts, undoing, certificate."""
