"""What nobody else does: runs of workers that vanished, and the safety net under the queue."""
