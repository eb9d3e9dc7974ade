"""Cases: one situation per text file, in folders by topic, with exact answers, because time is ours.

    # conformance/cases/lease/stranger_cannot_unlock.txt
    # Only the owner's unlock frees a queue; a stranger's is answered like any other and changes nothing.

    lock billing orders/b0/0 by alice
    ----
    granted 0

A case is played on the simulated cluster, whose frames take no time here: raw clients speak the protocol to its
broker, orderly consumers work beside them, and time passes when the case says so. `commands` holds everything that
a case can say. See docs/cases.md.
"""
