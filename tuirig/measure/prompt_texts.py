"""The texts of the built-in prompts: kind, title and request, six of each kind.

Everyday requests that ask for detail, so that a reply outlasts a limit of 256 tokens: acceptance
is understated where a reply ends by itself.
"""

from __future__ import annotations

TEXTS: tuple[tuple[str, str, str], ...] = (
    (
        "code",
        "reverse a linked list",
        """
        Write a Python class for a singly linked list with methods to append, find, delete and
        reverse in place. Add type hints, a docstring for each method and eight unit tests with
        pytest, then explain step by step how the reversal moves the pointers.
        """,
    ),
    (
        "code",
        "read a messy CSV",
        """
        Write a Python program that reads a CSV file of bank transactions with the columns date,
        payee, amount and note. Dates come in three formats and amounts may use a comma as the
        decimal sign. Skip broken lines but report each with its line number. Print totals per
        month and per payee as aligned tables. Show the whole program with comments.
        """,
    ),
    (
        "code",
        "a rate limiter in Go",
        """
        Write a token bucket rate limiter in Go that is safe for many goroutines. It needs a
        constructor, Allow and Wait methods (Wait takes a context), and a table-driven test with a
        fake clock. Explain each design decision after the code.
        """,
    ),
    (
        "code",
        "a to-do list in the browser",
        """
        Write a to-do list as one HTML file with plain JavaScript and CSS, without any library.
        Tasks can be added, edited, ticked off, sorted by dragging and filtered, and they survive
        a reload. It must work with the keyboard alone. Give the complete file.
        """,
    ),
    (
        "code",
        "queries for a small library",
        """
        Design an SQL schema for a town library with books, copies, members, loans and
        reservations. Write the CREATE TABLE statements with keys and constraints, insert a few
        sample rows, and then write ten useful queries, among them overdue loans, the most
        borrowed books of a year and members who never borrowed anything. Explain each query.
        """,
    ),
    (
        "code",
        "back up a folder with a script",
        """
        Write a Bash script that backs up a folder to another disk every night. It keeps seven
        daily and four weekly copies, uses hard links for files that did not change, stops if the
        disk is not mounted, writes a log, and returns a useful exit code. Comment every part and
        show how to run it from cron and from a systemd timer.
        """,
    ),
    (
        "advice",
        "prepare for a job interview",
        """
        I have an interview for a team lead position in two weeks and I have never led a team.
        Give me a detailed plan for each of the fourteen days, with questions that I should
        expect, good ways to answer them, and questions that I should ask myself.
        """,
    ),
    (
        "advice",
        "sleep better",
        """
        I wake up at four almost every night and can't fall asleep again. I work at a desk, drink
        coffee until the afternoon and run in the evening. Which habits should I look at, in which
        order should I change them, how long should I try each, and when should I see a doctor?
        Please explain the reasons in detail.
        """,
    ),
    (
        "advice",
        "a noisy neighbour",
        """
        The neighbour above me plays music until after midnight several times a week. I would like
        to solve this without a quarrel. Describe step by step what to do, from the first talk to
        a formal complaint, with example sentences for each step and the mistakes to avoid.
        """,
    ),
    (
        "advice",
        "buy a used car",
        """
        I want to buy a used car for about six thousand euros and know little about cars. Tell me
        in detail how to choose a model, what to ask on the telephone, what to check when I see
        the car and during the test drive, how to negotiate, and which papers I need.
        """,
    ),
    (
        "advice",
        "learn a language as an adult",
        """
        I am forty-five and want to speak enough Italian in one year to spend a month there. I
        have forty minutes a day. Make a plan by month with methods, materials, ways to practise
        speaking, and signs that tell me whether I am on track. Say what to do when I lose
        interest.
        """,
    ),
    (
        "advice",
        "move to another city",
        """
        My family of four moves to a city five hundred kilometres away in three months, with a cat
        and a piano. Write down what we should do in each week until then and in the first month
        after, how to choose a moving company, how to help the children, and where people usually
        lose money.
        """,
    ),
    (
        "story",
        "the lighthouse keeper",
        """
        Write a story of at least eight hundred words about a lighthouse keeper who finds a
        message in a bottle that was written by herself. Use dialogue, describe the sea and the
        weather, and let the end stay open.
        """,
    ),
    (
        "story",
        "a robot at the market",
        """
        Tell a long and funny story about a household robot that is sent to a weekly market for
        the first time and takes every sentence literally. Let it meet at least four people, and
        let it come home with something that nobody expected.
        """,
    ),
    (
        "story",
        "the last train",
        """
        Write the first chapter of a mystery novel. It begins at a small railway station at night,
        when the last train stops although nobody wants to get on or off. Introduce two main
        characters with their pasts, and end with a discovery. Take your time with the atmosphere.
        """,
    ),
    (
        "story",
        "a fairy tale about a baker",
        """
        Write a long fairy tale for children of about seven: a baker whose bread makes people tell
        the truth is called to the court of a king who has a secret. Use simple words, repeat a
        small rhyme three times, and find an ending that is fair to everybody.
        """,
    ),
    (
        "story",
        "letters between two sisters",
        """
        Write an exchange of six letters between two sisters, one on a research ship in the
        Antarctic and one at home on a farm. A family secret comes to light bit by bit. Each
        letter should have at least one hundred and fifty words and a voice of its own.
        """,
    ),
    (
        "story",
        "the chess game",
        """
        Tell a story about an old man and a girl who play one chess game over a whole summer, one
        move a day, on a bench in a park. Tell it from the girl's point of view, twenty years
        later. Write in detail about at least five of the days.
        """,
    ),
    (
        "explanation",
        "how a refrigerator works",
        """
        Explain to a curious fourteen-year-old how a refrigerator works. Go through every part of
        the cycle, say why evaporation cools and compression heats, use comparisons from daily
        life, and clear up three common misunderstandings. Be thorough.
        """,
    ),
    (
        "explanation",
        "what happens when a page loads",
        """
        Explain in detail what happens between typing a web address and seeing the page: name
        lookup, connection, encryption, request, response, parsing, layout and painting. Name what
        can be slow in each step and how to find out. Write for somebody who can program a little.
        """,
    ),
    (
        "explanation",
        "why the sky is blue",
        """
        Explain why the sky is blue at noon and red in the evening, why clouds are white, and what
        the sky looks like from the Moon and from Mars. Begin simply, then add the physics of
        scattering with its formula, and discuss why the sky is not violet.
        """,
    ),
    (
        "explanation",
        "interest and inflation",
        """
        Explain how central banks try to control inflation with interest rates. Follow a rise of
        one percentage point through banks, companies, house buyers and savers, with numbers as
        examples, and describe the side effects and the main criticisms of this method.
        """,
    ),
    (
        "explanation",
        "how vaccines work",
        """
        Explain how a vaccine teaches the immune system, which cells take part and what each does,
        how the different sorts of vaccine differ, why some need a booster, and how a new vaccine
        is tested. Write a text for adults without any medical knowledge, and go into detail.
        """,
    ),
    (
        "explanation",
        "hash tables",
        """
        Explain how a hash table works, from the idea to the details: hash functions, collisions,
        chaining, open addressing, load factor and resizing. Walk through an example with ten
        insertions into a table of eight places, and compare it with a balanced tree at the end.
        """,
    ),
    (
        "list",
        "twenty dinners for a week-night",
        """
        List twenty dinners that can be cooked in thirty minutes, half of them vegetarian. For
        each give the name, the ingredients for two people and the preparation in two or three
        sentences.
        """,
    ),
    (
        "list",
        "things to see in Vienna",
        """
        List twenty-five things to see or do in Vienna, sorted by district. For each write two
        sentences about what makes it special, how much time to plan, and whether it is good for
        children or for a rainy day.
        """,
    ),
    (
        "list",
        "habits of tidy code",
        """
        List thirty habits that keep a code base easy to read and to change. Give each a short
        title, a reason in one or two sentences and a small example of what to do or to avoid.
        """,
    ),
    (
        "list",
        "inventions and their history",
        """
        List twenty inventions that changed daily life, from the oldest to the newest. For each
        give the time, the place, the people behind it, the problem that it solved and one effect
        that nobody had foreseen.
        """,
    ),
    (
        "list",
        "games for a birthday party",
        """
        List eighteen games for the birthday party of ten children between six and nine years. For
        each give the material, the rules in a few sentences, the time it takes, and a variation
        for a small flat. Begin with quiet games and end with lively ones.
        """,
    ),
    (
        "list",
        "a checklist for a hiking tour",
        """
        Write a complete checklist for a hiking tour of five days from hut to hut in the Alps, in
        groups: clothing, equipment, food, safety, papers and preparation at home. Explain for
        every item in one sentence why it is needed and what it may weigh.
        """,
    ),
    (
        "summary",
        "a report on a street market",
        """
        Summarise the following report in three ways: as a single sentence, as a list of ten
        points, and as a detailed article of at least three hundred words for a local newspaper.

        The town council has tested for one year what happens when Mill Street is closed to cars
        on Saturdays and given to a market. On an average Saturday 4,100 people came, against
        2,600 before the test. Of the forty shops in the street, twenty-three report higher sales,
        nine report no change and eight report losses; the losses are largest for the furniture
        shop and the two shops that sell electrical goods, whose customers used to arrive by car.
        The noise at noon fell by four decibels, but the residents of the two side streets count
        three hundred more cars a day and ask for a speed limit. The market itself has thirty-one
        stalls, six of them from farms less than twenty kilometres away. Cleaning cost the town
        38,000 euros in the year, rents for the stalls brought in 29,000. A survey of 612 visitors
        found that 78 per cent want the market to stay, 14 per cent do not mind, and 8 per cent
        want the cars back. Several older visitors asked for benches and for a toilet. The council
        will decide in May whether the market becomes permanent, and whether a bus should stop at
        its northern end.
        """,
    ),
    (
        "summary",
        "minutes of a software meeting",
        """
        Turn these minutes into a summary for the management with headings for decisions, open
        questions, risks and tasks, each explained in full sentences, and add a schedule at the
        end.

        The meeting began with the outage of Tuesday. The payment service did not answer for
        fifty-two minutes because a certificate had expired; the reminder had been sent to the
        address of a colleague who left in spring. The certificates will from now on be renewed by
        a program, and a second person gets the warnings. Then the new search was shown. It
        answers in ninety milliseconds instead of four hundred, but it does not find words with
        hyphens, and nobody has yet tried it with the Polish catalogue. Support would like to have
        it before the autumn sale; development asks for three more weeks. It was agreed to switch
        it on for five per cent of the visitors on the first of September and to look at the
        numbers after ten days. The old mobile application is still used by eleven per cent of the
        customers. Marketing wants to keep it until the end of the year, operations would rather
        turn it off in October, because its server needs a system that gets no more security
        updates. No decision was made. Finally, the team asked for a second test environment; the
        cost is to be worked out by Friday.
        """,
    ),
    (
        "summary",
        "the history of a bridge",
        """
        Summarise this text for a guided tour: first a short version of four sentences, then a
        detailed version with dates in order, and then five questions that visitors might ask,
        with answers taken from the text.

        The first bridge across the river at this place was made of wood and paid for by the salt
        merchants, who had lost too many carts in the ford. It was finished in 1412 and burned
        twice, in 1488 and in 1533, both times because of the forges that had been built on its
        piers. The stone bridge that followed took nineteen years to build. Its master, who had
        never built a bridge before, made the middle arch two metres wider than the plan allowed,
        so that barges could pass at high water, and was fined for it. The flood of 1740 proved
        him right: four bridges upstream fell, this one lost only its railings. For two centuries
        there were houses on the bridge, eleven on each side; the last was taken down in 1822,
        when the first mail coach got stuck between them. A tram crossed it from 1897 to 1958.
        During the war the eastern arch was blown up and for six years replaced by a steel frame
        that had been made for a mine. Since 1994 the bridge has been closed to cars. When it was
        last repaired, divers found the iron points of the oak piles from 1412, still sharp, in
        the mud below the third pier.
        """,
    ),
    (
        "summary",
        "a study about bees in cities",
        """
        Explain this study to the members of a gardening club: what was asked, how it was done,
        what came out, what remains uncertain, and what it means for their gardens. Write at least
        four hundred words and do not leave out any number.

        Over three summers a group of biologists counted wild bees in sixty gardens of two cities
        and in thirty meadows around them. They walked the same path of fifty metres every two
        weeks and noted each bee that they saw within ten minutes. In the gardens they found 117
        species, in the meadows 131; 88 species lived in both. Gardens with more than twenty kinds
        of flowering plants had twice as many species as gardens with fewer than eight, while the
        size of the garden made hardly any difference. Dead wood and patches of bare soil helped
        the species that nest there, lawns that were cut every week helped none. In gardens less
        than two hundred metres from a beehive the number of wild bees was a fifth lower, but
        these gardens also had fewer flowers in June, so the authors do not want to say that the
        honey bees were the cause. The second summer was very dry; numbers fell by a third in the
        meadows and by only a tenth in the gardens, probably because people watered them. The
        authors admit that owners who let biologists into their gardens may care for bees more
        than others do.
        """,
    ),
    (
        "summary",
        "instructions for a coffee machine",
        """
        Rewrite these instructions for a small office: first a summary in five sentences for
        people in a hurry, then clear numbered steps for daily use, weekly care and trouble, and
        finally a table of all the lights and what they mean.

        Before the first use, rinse the tank, fill it up to the upper mark and let two cups of
        plain water run through. The green light blinks while the machine heats, which takes about
        ninety seconds, and stays on when it is ready. Put a cup under the spout and press the
        left button for a small coffee or the right one for a large one; pressing the same button
        again stops the flow early. A yellow light means that the tank is empty or not pushed in
        completely. If the yellow light blinks, the tray for used coffee is full: take it out only
        while the machine is switched on, because otherwise the counter is not set back. Once a
        week the brewing unit has to be taken out through the door on the right side and rinsed
        under warm water without any soap. After about four hundred cups, or after two hundred
        where the water is hard, the red light asks for descaling. This takes half an hour and
        must not be interrupted; if the power fails in between, begin again with fresh water. If
        red and yellow blink together, the brewing unit sits wrongly. The machine turns itself off
        after an hour. Milk should never be filled into the tank.
        """,
    ),
    (
        "summary",
        "a talk about old batteries",
        """
        Summarise this talk for three readers, one after the other and each in detail: a pupil of
        twelve years, the owner of an electric car, and a member of parliament.

        When the battery of an electric car has lost a fifth of its capacity, most owners notice
        it on long trips, and some have it replaced. But such a battery is far from useless.
        Connected to a solar roof it can serve for another ten years, because a house takes its
        power slowly and does not mind the weight. The speaker's company has bought nine hundred
        used batteries and built a store for a village of seventy houses from them. The hard part,
        she said, was not the electronics but the trust: nobody knew how the batteries had been
        treated. A test took eleven hours for each in the beginning; now it takes forty minutes,
        because the company measures how the voltage recovers after a short load. One battery in
        seven fails the test and goes to recycling, where about ninety-five per cent of the nickel
        and cobalt come back, but only half of the lithium. She asked for two rules: makers should
        have to publish the data that the car has collected about its battery, and a used battery
        should no longer count as waste when it crosses a border, which now needs eleven forms. In
        the discussion a fireman wanted to know how such a store burns; she answered that each
        rack has its own wall and its own water, and that the worst has not happened yet.
        """,
    ),
)
