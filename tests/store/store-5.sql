BEGIN TRANSACTION;
CREATE TABLE alarms (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, subscription TEXT NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL);
CREATE TABLE batches (
            query TEXT NOT NULL, batch BIGINT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (query, batch));
INSERT INTO "batches" VALUES('q',0,3);
CREATE TABLE changes (
            version INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT, at DOUBLE PRECISION NOT NULL);
INSERT INTO "changes" VALUES(1,'subscription','cheap','{"text":"price < 100","on":"stock","missing":"null"}',1.79484560234631609918e+09);
INSERT INTO "changes" VALUES(2,'subscription','two','{"text":"name = ''IBM'' AND price > 5","on":"stock","missing":"null","labels":{"owner":"me"}}',1.79484560289148569107e+09);
INSERT INTO "changes" VALUES(3,'subscription','gone','{"text":"vol > 1 AND size > 2","on":"stock","missing":"null"}',1.79484560289856195447e+09);
INSERT INTO "changes" VALUES(4,'subscription','both','{"text":"vol = size","on":"stock","missing":"null"}',1.79484560290164303782e+09);
INSERT INTO "changes" VALUES(5,'subscription','pair','{"text":"SELECT a.x AS x FROM trade AS a NEXT {$2.x = 1} trade AS b PUBLISH pairs","on":"stock","missing":"null"}',1.79484560290871310228e+09);
INSERT INTO "changes" VALUES(6,'subscription','reads','{"text":"SELECT p.x AS x FROM pairs AS p NEXT {$2.x = 2} trade AS b","on":"stock","missing":"null"}',1.79484560292588639254e+09);
INSERT INTO "changes" VALUES(7,'stream','news','{"attributes":[{"name":"title","type":"STRING"},{"name":"at","type":"TIMESTAMP"}],"time":["at"],"open":{}}',1.79484560292969369888e+09);
INSERT INTO "changes" VALUES(8,'subscription','pair',NULL,1.7948456029372525215e+09);
INSERT INTO "changes" VALUES(9,'subscription','news1','{"text":"title LIKE ''a%''","on":"news","missing":"strict"}',1.7948456029403004646e+09);
INSERT INTO "changes" VALUES(10,'subscription','cheap','{"text":"price < 50","on":"stock","missing":"null"}',1.79484560295336651805e+09);
INSERT INTO "changes" VALUES(11,'subscription','two','{"text":"name = ''IBM'' AND price > 5","on":"stock","missing":"null","labels":{"owner":"me"},"paused":true}',1.79484560295380926129e+09);
INSERT INTO "changes" VALUES(12,'subscription','gone',NULL,1.79484560295722413063e+09);
INSERT INTO "changes" VALUES(13,'subscription','last','{"text":"title = ''x''","on":"news","missing":"null"}',1.79484560296483182904e+09);
CREATE TABLE cursors (
            subscription TEXT PRIMARY KEY, seq BIGINT NOT NULL, attempts BIGINT NOT NULL,
            due DOUBLE PRECISION NOT NULL, note TEXT);
CREATE TABLE errors (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, stream TEXT, event TEXT, code TEXT NOT NULL,
            reason TEXT NOT NULL, text TEXT, at DOUBLE PRECISION NOT NULL, subscriptions TEXT, concerned BIGINT);
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, body TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, via TEXT, origin TEXT);
INSERT INTO "events" VALUES(1,'stock','{"price": 1}',1.79484560296916198732e+09,NULL,NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "facts" VALUES('store','986f0749-1b90-4f48-99f5-e7dcafb4fa7d');
INSERT INTO "facts" VALUES('tables','5');
CREATE TABLE files (
            digest TEXT NOT NULL, part BIGINT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (digest, part));
CREATE TABLE keys (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL, scopes TEXT NOT NULL, rate DOUBLE PRECISION,
            quota BIGINT, created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION);
CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until DOUBLE PRECISION NOT NULL);
CREATE TABLE letters (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, subscription TEXT NOT NULL, notification BIGINT NOT NULL, id TEXT NOT NULL,
            reason TEXT NOT NULL, attempts BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL);
CREATE TABLE links (peer TEXT PRIMARY KEY, epoch TEXT NOT NULL, number BIGINT NOT NULL);
CREATE TABLE notifications (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, stream TEXT, event TEXT, subscription TEXT NOT NULL,
            output TEXT, labels TEXT, at DOUBLE PRECISION NOT NULL);
INSERT INTO "notifications" VALUES(1,'m1','stock','1','cheap',NULL,NULL,1.79484560297318291666e+09);
CREATE TABLE progress (query TEXT PRIMARY KEY, event BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL);
CREATE TABLE publications (
            key TEXT PRIMARY KEY, digest TEXT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
            at DOUBLE PRECISION NOT NULL);
CREATE TABLE quotas (
            key TEXT NOT NULL, day TEXT NOT NULL, events BIGINT NOT NULL, PRIMARY KEY (key, day));
CREATE TABLE sent (
            subscription TEXT NOT NULL, key TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (subscription, key));
CREATE TABLE staged (
            job TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, stream TEXT, event TEXT, subscription TEXT,
            output TEXT, labels TEXT, code TEXT, reason TEXT, text TEXT, subscriptions TEXT, concerned BIGINT);
CREATE TABLE state (name TEXT PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE subscriptions (name TEXT PRIMARY KEY, body TEXT NOT NULL, version BIGINT NOT NULL);
INSERT INTO "subscriptions" VALUES('both','{"text":"vol = size","on":"stock","missing":"null"}',4);
INSERT INTO "subscriptions" VALUES('reads','{"text":"SELECT p.x AS x FROM pairs AS p NEXT {$2.x = 2} trade AS b","on":"stock","missing":"null"}',6);
INSERT INTO "subscriptions" VALUES('news1','{"text":"title LIKE ''a%''","on":"news","missing":"strict"}',9);
INSERT INTO "subscriptions" VALUES('cheap','{"text":"price < 50","on":"stock","missing":"null"}',10);
INSERT INTO "subscriptions" VALUES('two','{"text":"name = ''IBM'' AND price > 5","on":"stock","missing":"null","labels":{"owner":"me"},"paused":true}',11);
INSERT INTO "subscriptions" VALUES('last','{"text":"title = ''x''","on":"news","missing":"null"}',13);
CREATE TABLE tickets (
            subscription TEXT PRIMARY KEY, hash TEXT NOT NULL, owner TEXT, name TEXT, delivery TEXT NOT NULL,
            state TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL,
            ended DOUBLE PRECISION, acked BIGINT NOT NULL);
CREATE INDEX changes_of ON changes (kind, name, version);
CREATE INDEX events_of ON events (stream, id);
CREATE INDEX staged_of ON staged (job);
CREATE INDEX tickets_of ON tickets (owner, subscription);
CREATE INDEX tickets_until ON tickets (expires);
CREATE INDEX publications_at ON publications (at);
CREATE INDEX notifications_of ON notifications (subscription, seq);
CREATE INDEX letters_of ON letters (subscription, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('changes',13);
INSERT INTO "sqlite_sequence" VALUES('events',1);
INSERT INTO "sqlite_sequence" VALUES('notifications',1);
COMMIT;
