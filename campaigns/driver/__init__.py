"""An independent judge: its own links, scheduler and judgement, and of meshlock only the nodes."""
