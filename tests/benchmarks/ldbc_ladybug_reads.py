"""LDBC's reads in ladybug's dialect.

A message is a ``Post`` or a ``Comment``, which have a table each, so that a pattern names both; places and organisations
have a table for each kind.  Paths are walks of at most 30 edges, lists have one type, subqueries return nothing but whether
and how many.  The rows are those of the suite's own texts, records as lists of their values.
"""

from __future__ import annotations

CANNOT = {
    "BI15": "costs of the query's own",
    "BI19": "costs of the query's own",
    "BI20": "costs of the query's own",
}
"""Reads that its cheapest paths do not express: what an edge costs must be stored with it."""
TEXTS = {
    "IC1": """MATCH (me:Person {id: $personId})-[chain:KNOWS* SHORTEST 1..3]-(namesake:Person {firstName: $firstName})
WHERE namesake.id <> $personId
WITH namesake, length(chain) AS steps
ORDER BY steps, namesake.lastName, namesake.id
LIMIT 20
MATCH (namesake)-[:IS_LOCATED_IN]->(home:City)
OPTIONAL MATCH (namesake)-[s:STUDY_AT]->(school:University)-[:IS_LOCATED_IN]->(town:City)
WITH namesake, steps, home, collect({school: school.name, year: s.classYear, town: town.name}) AS schools
OPTIONAL MATCH (namesake)-[w:WORK_AT]->(firm:Company)-[:IS_LOCATED_IN]->(land:Country)
WITH namesake, steps, home, schools, collect({firm: firm.name, year: w.workFrom, land: land.name}) AS firms
RETURN namesake.id AS personId, namesake.lastName AS lastName, steps, namesake.birthday AS birthday,
       namesake.creationDate AS joined, namesake.gender AS gender, namesake.browserUsed AS browser,
       namesake.locationIP AS ip, namesake.email AS emails, namesake.speaks AS languages, home.name AS city, schools, firms
ORDER BY steps, lastName, personId""",
    "IC2": """MATCH (:Person {id: $personId})-[:KNOWS]-(pal:Person)
MATCH (pal)<-[:HAS_CREATOR]-(note:Post:Comment)
WHERE note.creationDate <= $maxDate
RETURN pal.id AS authorId, pal.firstName AS firstName, pal.lastName AS lastName,
       note.id AS noteId, coalesce(note.content, note.imageFile) AS text, note.creationDate AS written
ORDER BY written DESC, noteId
LIMIT 20""",
    "IC3": """MATCH (me:Person {id: $personId})-[:KNOWS*1..2]-(traveller:Person)
WHERE traveller.id <> $personId
WITH DISTINCT traveller
WHERE NOT EXISTS {
    MATCH (traveller)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(home:Country)
    WHERE home.name IN [$countryXName, $countryYName]
}
WITH traveller,
     COUNT {
         MATCH (traveller)<-[:HAS_CREATOR]-(x:Post:Comment)-[:IS_LOCATED_IN]->(:Country {name: $countryXName})
         WHERE x.creationDate >= $startDate AND x.creationDate < $endDate
     } AS fromX,
     COUNT {
         MATCH (traveller)<-[:HAS_CREATOR]-(y:Post:Comment)-[:IS_LOCATED_IN]->(:Country {name: $countryYName})
         WHERE y.creationDate >= $startDate AND y.creationDate < $endDate
     } AS fromY
WHERE fromX > 0 AND fromY > 0
RETURN traveller.id AS travellerId, traveller.firstName AS firstName, traveller.lastName AS lastName,
       fromX, fromY, fromX + fromY AS fromBoth
ORDER BY fromBoth DESC, travellerId
LIMIT 20""",
    "IC4": """MATCH (me:Person {id: $personId})-[:KNOWS]-(:Person)<-[:HAS_CREATOR]-(fresh:Post)-[:HAS_TAG]->(topic:Tag)
WHERE $startDate <= fresh.creationDate AND fresh.creationDate < $endDate
WITH me, topic, count(DISTINCT fresh) AS uses
WHERE NOT EXISTS {
    MATCH (me)-[:KNOWS]-(:Person)<-[:HAS_CREATOR]-(stale:Post)-[:HAS_TAG]->(topic)
    WHERE stale.creationDate < $startDate
}
RETURN topic.name AS topicName, uses
ORDER BY uses DESC, topicName
LIMIT 10""",
    "IC5": """MATCH (me:Person {id: $personId})-[:KNOWS*1..2]-(peer:Person)
WHERE peer.id <> $personId
WITH DISTINCT peer
MATCH (peer)<-[entry:HAS_MEMBER]-(club:Forum)
WHERE entry.joinDate > $minDate
OPTIONAL MATCH (peer)<-[:HAS_CREATOR]-(post:Post)<-[:CONTAINER_OF]-(club)
WITH club, count(post) AS posts
ORDER BY posts DESC, club.id
LIMIT 20
RETURN club.title AS title, posts""",
    "IC6": """MATCH (me:Person {id: $personId})-[:KNOWS*1..2]-(peer:Person)
WHERE peer.id <> $personId
WITH DISTINCT peer
MATCH (peer)<-[:HAS_CREATOR]-(post:Post), (tag:Tag {name: $tagName})<-[:HAS_TAG]-(post)-[:HAS_TAG]->(beside:Tag)
WHERE beside.name <> $tagName
RETURN beside.name AS tagName, count(DISTINCT post) AS posts
ORDER BY posts DESC, tagName
LIMIT 10""",
    "IC7": """MATCH (author:Person {id: $personId})<-[:HAS_CREATOR]-(:Post:Comment)<-[like:LIKES]-(fan:Person)
WITH author, fan, max(like.creationDate) AS likedAt
ORDER BY likedAt DESC, fan.id
LIMIT 20
MATCH (fan)-[like:LIKES]->(liked:Post:Comment)-[:HAS_CREATOR]->(author)
WHERE like.creationDate = likedAt
WITH author, fan, likedAt, min(liked.id) AS likedId
MATCH (liked:Post:Comment)
WHERE liked.id = likedId
RETURN fan.id AS fanId, fan.firstName AS firstName, fan.lastName AS lastName, likedAt,
       likedId, coalesce(liked.content, liked.imageFile) AS text,
       (likedAt - liked.creationDate) / 60000 AS minutes,
       NOT EXISTS { MATCH (author)-[:KNOWS]-(fan) } AS stranger
ORDER BY likedAt DESC, fanId""",
    "IC8": """MATCH (:Person {id: $personId})<-[:HAS_CREATOR]-(:Post:Comment)<-[:REPLY_OF]-(answer:Comment)
WITH answer
ORDER BY answer.creationDate DESC, answer.id
LIMIT 20
MATCH (answer)-[:HAS_CREATOR]->(writer:Person)
RETURN writer.id AS writerId, writer.firstName AS firstName, writer.lastName AS lastName,
       answer.creationDate AS written, answer.id AS answerId, answer.content AS text
ORDER BY written DESC, answerId""",
    "IC9": """MATCH (me:Person {id: $personId})-[:KNOWS*1..2]-(peer:Person)
WHERE peer.id <> $personId
WITH DISTINCT peer
MATCH (peer)<-[:HAS_CREATOR]-(note:Post:Comment)
WHERE note.creationDate < $maxDate
RETURN peer.id AS authorId, peer.firstName AS firstName, peer.lastName AS lastName,
       note.id AS noteId, coalesce(note.content, note.imageFile) AS text, note.creationDate AS written
ORDER BY written DESC, noteId
LIMIT 20""",
    "IC10": """MATCH (me:Person {id: $personId})-[:KNOWS*2..2]-(candidate:Person)
WHERE candidate.id <> $personId AND NOT EXISTS { MATCH (me)-[:KNOWS]-(candidate) }
WITH DISTINCT me, candidate, epoch_ms(candidate.birthday) AS born
WITH me, candidate, date_part('month', born) AS month, date_part('day', born) AS day
WHERE month = $month AND day >= 21 OR month = $month % 12 + 1 AND day < 22
WITH candidate,
     COUNT { MATCH (candidate)<-[:HAS_CREATOR]-(:Post) } AS posts,
     COUNT {
         MATCH (candidate)<-[:HAS_CREATOR]-(post:Post)
         WHERE EXISTS { MATCH (post)-[:HAS_TAG]->(:Tag)<-[:HAS_INTEREST]-(me) }
     } AS ofInterest
MATCH (candidate)-[:IS_LOCATED_IN]->(home:City)
RETURN candidate.id AS candidateId, candidate.firstName AS firstName, candidate.lastName AS lastName,
       2 * ofInterest - posts AS score, candidate.gender AS gender, home.name AS city
ORDER BY score DESC, candidateId
LIMIT 10""",
    "IC11": """MATCH (me:Person {id: $personId})-[:KNOWS*1..2]-(peer:Person)
WHERE peer.id <> $personId
WITH DISTINCT peer
MATCH (peer)-[job:WORK_AT]->(firm:Company)-[:IS_LOCATED_IN]->(:Country {name: $countryName})
WHERE job.workFrom < $workFromYear
RETURN peer.id AS peerId, peer.firstName AS firstName, peer.lastName AS lastName,
       firm.name AS firmName, job.workFrom AS since
ORDER BY since, peerId, firmName DESC
LIMIT 10""",
    "IC12": """MATCH (:Person {id: $personId})-[:KNOWS]-(pal:Person)<-[:HAS_CREATOR]-(answer:Comment)-[:REPLY_OF]->(:Post)-[:HAS_TAG]->(topic:Tag)
WHERE EXISTS { MATCH (topic)-[:HAS_TYPE]->(:TagClass)-[:IS_SUBCLASS_OF*0..]->(:TagClass {name: $tagClassName}) }
RETURN pal.id AS palId, pal.firstName AS firstName, pal.lastName AS lastName,
       collect(DISTINCT topic.name) AS topics, count(DISTINCT answer) AS answers
ORDER BY answers DESC, palId
LIMIT 20""",
    "IC13": """MATCH (one:Person {id: $person1Id}), (other:Person {id: $person2Id})
OPTIONAL MATCH (one)-[chain:KNOWS* SHORTEST]-(other)
RETURN CASE WHEN one.id = other.id THEN 0 ELSE coalesce(length(chain), -1) END AS steps""",
    "IC14": """MATCH chain = (:Person {id: $person1Id})-[:KNOWS* ALL SHORTEST]-(:Person {id: $person2Id})
WITH list_transform(nodes(chain), n -> n.id) AS ids
UNWIND range(1, size(ids) - 1) AS at
WITH ids, at, ids[at] AS leftId, ids[at + 1] AS rightId
MATCH (left:Person), (right:Person)
WHERE left.id = leftId AND right.id = rightId
WITH ids,
     COUNT { MATCH (left)<-[:HAS_CREATOR]-(:Comment)-[:REPLY_OF]->(:Post)-[:HAS_CREATOR]->(right) }
       + COUNT { MATCH (left)<-[:HAS_CREATOR]-(:Post)<-[:REPLY_OF]-(:Comment)-[:HAS_CREATOR]->(right) } AS onPosts,
     COUNT { MATCH (left)<-[:HAS_CREATOR]-(:Comment)-[:REPLY_OF]-(:Comment)-[:HAS_CREATOR]->(right) } AS onComments
RETURN ids AS personIds, sum(onPosts + 0.5 * onComments) AS weight
ORDER BY weight DESC""",
    "IS1": """MATCH (who:Person {id: $personId})-[:IS_LOCATED_IN]->(home:City)
RETURN who.firstName AS firstName, who.lastName AS lastName, who.birthday AS born, who.locationIP AS ip,
       who.browserUsed AS browser, home.id AS cityId, who.gender AS gender, who.creationDate AS joined""",
    "IS2": """MATCH (:Person {id: $personId})<-[:HAS_CREATOR]-(note:Post:Comment)
WITH note
ORDER BY note.creationDate DESC, note.id DESC
LIMIT 10
MATCH (note)-[:REPLY_OF*0..]->(root:Post)-[:HAS_CREATOR]->(starter:Person)
RETURN note.id AS noteId, coalesce(note.content, note.imageFile) AS text, note.creationDate AS written,
       root.id AS rootId, starter.id AS starterId, starter.firstName AS firstName, starter.lastName AS lastName
ORDER BY written DESC, noteId DESC""",
    "IS3": """MATCH (:Person {id: $personId})-[tie:KNOWS]-(pal:Person)
RETURN pal.id AS palId, pal.firstName AS firstName, pal.lastName AS lastName, tie.creationDate AS since
ORDER BY since DESC, palId""",
    "IS4": """MATCH (note:Post:Comment {id: $messageId})
RETURN note.creationDate AS written, coalesce(note.content, note.imageFile) AS text""",
    "IS5": """MATCH (writer:Person)<-[:HAS_CREATOR]-(:Post:Comment {id: $messageId})
RETURN writer.id AS writerId, writer.firstName AS firstName, writer.lastName AS lastName""",
    "IS6": """MATCH (:Post:Comment {id: $messageId})-[:REPLY_OF*0..]->(:Post)<-[:CONTAINER_OF]-(board:Forum)
MATCH (board)-[:HAS_MODERATOR]->(chair:Person)
RETURN board.id AS boardId, board.title AS title, chair.id AS chairId,
       chair.firstName AS firstName, chair.lastName AS lastName""",
    "IS7": """MATCH (note:Post:Comment {id: $messageId})-[:HAS_CREATOR]->(asker:Person)
MATCH (note)<-[:REPLY_OF]-(answer:Comment)-[:HAS_CREATOR]->(writer:Person)
RETURN answer.id AS answerId, answer.content AS text, answer.creationDate AS written,
       writer.id AS writerId, writer.firstName AS firstName, writer.lastName AS lastName,
       EXISTS { MATCH (asker)-[:KNOWS]-(writer) } AS acquainted
ORDER BY written DESC, writerId""",
    "BI1": """MATCH (m:Post:Comment)
WHERE m.creationDate < $datetime
WITH count(*) AS everything
MATCH (m:Post:Comment)
WHERE m.creationDate < $datetime AND m.content IS NOT NULL
WITH everything, date_part('year', m.creationDate) AS year, label(m) = 'Comment' AS isComment, m.length AS size,
     CASE
         WHEN m.length < 40 THEN 0
         WHEN m.length < 80 THEN 1
         WHEN m.length < 160 THEN 2
         ELSE 3
     END AS sizeClass
WITH everything, year, isComment, sizeClass, count(*) AS messages, avg(size) AS meanSize, sum(size) AS totalSize
RETURN year, isComment, sizeClass, messages, meanSize, totalSize, cast(messages, 'DOUBLE') / everything AS share
ORDER BY year DESC, isComment, sizeClass""",
    "BI2": """MATCH (topic:Tag)-[:HAS_TYPE]->(:TagClass {name: $tagClass})
OPTIONAL MATCH (topic)<-[:HAS_TAG]-(m:Post:Comment)
WHERE $date <= m.creationDate AND m.creationDate < $date + interval('200 days')
WITH topic,
     count(CASE WHEN m.creationDate < $date + interval('100 days') THEN m.id END) AS earlier,
     count(CASE WHEN m.creationDate >= $date + interval('100 days') THEN m.id END) AS later
RETURN topic.name AS topicName, earlier, later, abs(later - earlier) AS change
ORDER BY change DESC, topicName
LIMIT 100""",
    "BI3": """MATCH (chair:Person)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(:Country {name: $country})
MATCH (chair)<-[:HAS_MODERATOR]-(board:Forum)-[:CONTAINER_OF]->(:Post)<-[:REPLY_OF*0..]-(m:Post:Comment)
WHERE EXISTS { MATCH (m)-[:HAS_TAG]->(:Tag)-[:HAS_TYPE]->(:TagClass {name: $tagClass}) }
RETURN board.id AS boardId, board.title AS title, board.creationDate AS founded, chair.id AS chairId,
       count(DISTINCT m) AS messages
ORDER BY messages DESC, boardId
LIMIT 20""",
    "BI4": """MATCH (board:Forum)-[:HAS_MEMBER]->(:Person)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(land:Country)
WHERE board.creationDate > $date
WITH board.id AS board, land.id AS land, count(*) AS members
WITH board, max(members) AS most
ORDER BY most DESC, board
LIMIT 100
WITH DISTINCT board
WITH collect(board) AS boards
MATCH (member:Person)
WHERE EXISTS { MATCH (member)<-[:HAS_MEMBER]-(b:Forum) WHERE b.id IN boards }
OPTIONAL MATCH (member)<-[:HAS_CREATOR]-(m:Post:Comment)-[:REPLY_OF*0..]->(:Post)<-[:CONTAINER_OF]-(home:Forum)
WHERE home.id IN boards
RETURN member.id AS memberId, member.firstName AS firstName, member.lastName AS lastName,
       member.creationDate AS joined, count(m.id) AS messages
ORDER BY messages DESC, memberId
LIMIT 100""",
    "BI5": """MATCH (writer:Person)<-[:HAS_CREATOR]-(m:Post:Comment)-[:HAS_TAG]->(:Tag {name: $tag})
WITH writer, m,
     COUNT { MATCH (m)<-[:REPLY_OF]-(:Comment) } AS answersOf, COUNT { MATCH (m)<-[:LIKES]-(:Person) } AS likesOf
WITH writer, count(m) AS messages, sum(answersOf) AS answers, sum(likesOf) AS likes
RETURN writer.id AS writerId, answers, likes, messages, messages + 2 * answers + 10 * likes AS score
ORDER BY score DESC, writerId
LIMIT 100""",
    "BI6": """MATCH (:Tag {name: $tag})<-[:HAS_TAG]-(m:Post:Comment)-[:HAS_CREATOR]->(writer:Person)
OPTIONAL MATCH (m)<-[:LIKES]-(fan:Person)
WITH DISTINCT writer, fan
WITH writer, COUNT { MATCH (fan)<-[:HAS_CREATOR]-(:Post:Comment)<-[:LIKES]-(:Person) } AS likes
RETURN writer.id AS writerId, sum(likes) AS authority
ORDER BY authority DESC, writerId
LIMIT 100""",
    "BI7": """MATCH (topic:Tag {name: $tag})<-[:HAS_TAG]-(:Post:Comment)<-[:REPLY_OF]-(answer:Comment)
WHERE NOT EXISTS { MATCH (answer)-[:HAS_TAG]->(topic) }
MATCH (answer)-[:HAS_TAG]->(other:Tag)
RETURN other.name AS tagName, count(DISTINCT answer) AS answers
ORDER BY answers DESC, tagName
LIMIT 100""",
    "BI8": """MATCH (topic:Tag {name: $tag})
MATCH (p:Person)
WITH topic, p,
     100 * COUNT { MATCH (p)-[:HAS_INTEREST]->(topic) }
       + COUNT {
             MATCH (p)<-[:HAS_CREATOR]-(m:Post:Comment)-[:HAS_TAG]->(topic)
             WHERE $startDate < m.creationDate AND m.creationDate < $endDate
         } AS score
WHERE score > 0
OPTIONAL MATCH (p)-[:KNOWS]-(pal:Person)
WITH p, score,
     100 * COUNT { MATCH (pal)-[:HAS_INTEREST]->(topic) }
       + COUNT {
             MATCH (pal)<-[:HAS_CREATOR]-(m:Post:Comment)-[:HAS_TAG]->(topic)
             WHERE $startDate < m.creationDate AND m.creationDate < $endDate
         } AS palScore
WITH p, score, sum(palScore) AS friendsScore
RETURN p.id AS personId, score, friendsScore
ORDER BY score + friendsScore DESC, personId
LIMIT 100""",
    "BI9": """MATCH (starter:Person)<-[:HAS_CREATOR]-(root:Post)<-[:REPLY_OF*0..]-(m:Post:Comment)
WHERE $startDate <= root.creationDate AND root.creationDate <= $endDate
  AND $startDate <= m.creationDate AND m.creationDate <= $endDate
RETURN starter.id AS starterId, starter.firstName AS firstName, starter.lastName AS lastName,
       count(DISTINCT root) AS talks, count(m) AS messages
ORDER BY messages DESC, starterId
LIMIT 100""",
    "BI10": """MATCH (start:Person {id: $personId}), (expert:Person)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(:Country {name: $country})
WHERE expert.id <> $personId
MATCH (start)-[chain:KNOWS* SHORTEST]-(expert)
WHERE $minPathDistance <= length(chain) AND length(chain) <= $maxPathDistance
MATCH (expert)<-[:HAS_CREATOR]-(m:Post:Comment)-[:HAS_TAG]->(:Tag)-[:HAS_TYPE]->(:TagClass {name: $tagClass})
WITH DISTINCT expert, m
MATCH (m)-[:HAS_TAG]->(topic:Tag)
RETURN expert.id AS expertId, topic.name AS topicName, count(m) AS messages
ORDER BY messages DESC, topicName, expertId
LIMIT 100""",
    "BI11": """MATCH (a:Person)-[ab:KNOWS]-(b:Person)-[bc:KNOWS]-(c:Person)-[ca:KNOWS]-(a)
WHERE a.id < b.id AND b.id < c.id
  AND $startDate <= ab.creationDate AND ab.creationDate <= $endDate
  AND $startDate <= bc.creationDate AND bc.creationDate <= $endDate
  AND $startDate <= ca.creationDate AND ca.creationDate <= $endDate
  AND EXISTS { MATCH (a)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(:Country {name: $country}) }
  AND EXISTS { MATCH (b)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(:Country {name: $country}) }
  AND EXISTS { MATCH (c)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(:Country {name: $country}) }
RETURN count(*) AS triangles""",
    "BI12": """MATCH (p:Person)
OPTIONAL MATCH (p)<-[:HAS_CREATOR]-(m:Post:Comment)-[:REPLY_OF*0..]->(root:Post)
WHERE m.creationDate > $startDate AND m.length < $lengthThreshold AND m.content IS NOT NULL
  AND root.language IN $languages
WITH p, count(m.id) AS messages
RETURN messages, count(p) AS persons
ORDER BY persons DESC, messages DESC""",
    "BI13": """MATCH (:Country {name: $country})<-[:IS_PART_OF]-(:City)<-[:IS_LOCATED_IN]-(p:Person)
WHERE p.creationDate < $endDate
WITH p,
     12 * (date_part('year', $endDate) - date_part('year', p.creationDate))
       + date_part('month', $endDate) - date_part('month', p.creationDate) + 1 AS months,
     COUNT { MATCH (p)<-[:HAS_CREATOR]-(m:Post:Comment) WHERE m.creationDate < $endDate } AS messages
WHERE messages < months
WITH collect(p.id) AS silent
UNWIND silent AS quietId
MATCH (quiet:Person)
WHERE quiet.id = quietId
OPTIONAL MATCH (quiet)<-[:HAS_CREATOR]-(:Post:Comment)<-[:LIKES]-(fan:Person)
WHERE fan.creationDate < $endDate
WITH quiet, count(fan.id) AS likes, sum(CASE WHEN fan.id IN silent THEN 1 ELSE 0 END) AS fromSilent
RETURN quiet.id AS quietId, fromSilent, likes,
       CASE likes WHEN 0 THEN 0.0 ELSE cast(fromSilent, 'DOUBLE') / likes END AS share
ORDER BY share DESC, quietId
LIMIT 100""",
    "BI14": """MATCH (:Country {name: $country1})<-[:IS_PART_OF]-(city:City)<-[:IS_LOCATED_IN]-(one:Person)
MATCH (one)-[:KNOWS]-(two:Person)-[:IS_LOCATED_IN]->(:City)-[:IS_PART_OF]->(:Country {name: $country2})
WITH city, one, two,
     CASE WHEN EXISTS { MATCH (one)<-[:HAS_CREATOR]-(:Comment)-[:REPLY_OF]->(:Post:Comment)-[:HAS_CREATOR]->(two) } THEN 4 ELSE 0 END
       + CASE WHEN EXISTS { MATCH (two)<-[:HAS_CREATOR]-(:Comment)-[:REPLY_OF]->(:Post:Comment)-[:HAS_CREATOR]->(one) } THEN 1 ELSE 0 END
       + CASE WHEN EXISTS { MATCH (one)-[:LIKES]->(:Post:Comment)-[:HAS_CREATOR]->(two) } THEN 10 ELSE 0 END
       + CASE WHEN EXISTS { MATCH (two)-[:LIKES]->(:Post:Comment)-[:HAS_CREATOR]->(one) } THEN 1 ELSE 0 END AS score
WITH city, max(score) AS score, collect({one: one.id, two: two.id, score: score}) AS pairs
UNWIND pairs AS pair
WITH city, score, pair
WHERE pair.score = score
WITH city, score, min(pair.one) AS oneId, collect(pair) AS pairs
UNWIND pairs AS pair
WITH city, score, oneId, pair
WHERE pair.one = oneId
WITH city, score, oneId, min(pair.two) AS twoId
RETURN oneId, twoId, city.name AS cityName, score
ORDER BY score DESC, oneId, twoId
LIMIT 100""",
    "BI16": """UNWIND [{key: 'A', tag: $tagA, day: $dateA}, {key: 'B', tag: $tagB, day: $dateB}] AS story
MATCH (topic:Tag)<-[:HAS_TAG]-(m:Post:Comment)-[:HAS_CREATOR]->(writer:Person)
WHERE topic.name = story.tag AND date_trunc('day', m.creationDate) = story.day
WITH story.key AS key, writer.id AS id, count(m) AS messages
WITH key, collect({id: id, messages: messages}) AS entries
UNWIND entries AS entry
WITH key, entry.id AS id, entry.messages AS messages, list_transform(entries, e -> e.id) AS crowd
MATCH (writer:Person)
WHERE writer.id = id
WITH key, id, messages, COUNT { MATCH (writer)-[:KNOWS]-(pal:Person) WHERE pal.id IN crowd } AS known
WHERE known <= $maxKnowsLimit
WITH id,
     sum(CASE key WHEN 'A' THEN messages ELSE 0 END) AS onA,
     sum(CASE key WHEN 'B' THEN messages ELSE 0 END) AS onB
WHERE onA > 0 AND onB > 0
RETURN id AS writerId, onA, onB
ORDER BY onA + onB DESC, writerId
LIMIT 20""",
    "BI17": """MATCH (topic:Tag {name: $tag})<-[:HAS_TAG]-(first:Post:Comment)-[:HAS_CREATOR]->(source:Person),
      (first)-[:REPLY_OF*0..]->(:Post)<-[:CONTAINER_OF]-(here:Forum)
MATCH (here)-[:HAS_MEMBER]->(carrier:Person)<-[:HAS_CREATOR]-(later:Post:Comment)-[:HAS_TAG]->(topic)
WHERE later.creationDate > first.creationDate + to_hours($delta)
MATCH (later)<-[:REPLY_OF]-(answer:Comment)-[:HAS_TAG]->(topic)
MATCH (answer)-[:HAS_CREATOR]->(listener:Person)<-[:HAS_MEMBER]-(here)
WHERE listener.id <> carrier.id
MATCH (later)-[:REPLY_OF*0..]->(:Post)<-[:CONTAINER_OF]-(there:Forum)
WHERE there.id <> here.id AND NOT EXISTS { MATCH (there)-[:HAS_MEMBER]->(source) }
RETURN source.id AS sourceId, count(DISTINCT later) AS messages
ORDER BY messages DESC, sourceId
LIMIT 10""",
    "BI18": """MATCH (one:Person)-[:HAS_INTEREST]->(:Tag {name: $tag})<-[:HAS_INTEREST]-(two:Person)
WHERE one.id <> two.id AND NOT EXISTS { MATCH (one)-[:KNOWS]-(two) }
MATCH (one)-[:KNOWS]-(mutual:Person)-[:KNOWS]-(two)
RETURN one.id AS oneId, two.id AS twoId, count(DISTINCT mutual) AS mutuals
ORDER BY mutuals DESC, oneId, twoId
LIMIT 20""",
}
"""The reads, in the suite's words as far as the dialect has them."""
