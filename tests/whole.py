"""How far exhaustive tests look: ``make test-whole`` looks at everything, in some minutes more.

What is caught is the same in both: each mutant dies in ``make test``. It is the searches that find
nothing that are cut short there, and set-ups that are explored for their counts alone.
"""

import os

WHOLE = os.environ.get("MESHLOCK_WHOLE", "") != ""
