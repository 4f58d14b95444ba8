-- Candidates in PostgreSQL: what the service "export" of compose.yaml reads.
CREATE TABLE faq (id bigint PRIMARY KEY, question text NOT NULL, answer text NOT NULL, topic text);
INSERT INTO faq VALUES
  (1, 'Why was my card declined?', 'Most often the limit is reached, or the card has expired.', 'cards'),
  (2, 'How do I block a lost card?', 'Call us at any time, or block it in the app.', 'cards'),
  (3, 'When are you open?', 'From nine to five, Monday to Friday.', 'hours');
