;;; duologue.el --- Conversations with language models over duologue  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `M-x duologue' shows a conversation and, below it, the prompt that is being written; C-c C-c sends the prompt.
;; Each conversation is a process "duologue rpc", which talks to the provider, keeps the conversation in a store,
;; and runs the tools that are configured.
;;
;; The file has four parts: the process (bytes to frames), the view (frames to messages), the buffers, and the
;; commands.

;;; Code:

(require 'cl-lib)
(require 'map)
(require 'seq)
(require 'subr-x)

(defgroup duologue nil
  "Conversations with language models over duologue."
  :group 'tools
  :prefix "duologue-")

(defcustom duologue-command '("duologue")
  "The program, and its first arguments."
  :type '(repeat string))

(defcustom duologue-options nil
  "Options of \"duologue rpc\" for each conversation.
One of them may be \"--profile=work\"."
  :type '(repeat string))

(defcustom duologue-store 'default
  "The file in which conversations are stored.
`default' is DUOLOGUE_STORE, or else the store of \"duologue chat\".  Nothing
is stored if it is nil."
  :type '(choice (const default) (const nil) file))

(defcustom duologue-question-idle-seconds 1.0
  "Seconds without a key after which Emacs asks about a tool call that waits.
It asks by itself only while the conversation or its prompt is in the selected
window; elsewhere, or if this is nil, `duologue-approve' asks."
  :type '(choice number (const nil)))

(defcustom duologue-prompt-height 6
  "Lines of the window of the prompt."
  :type 'natnum)

(defface duologue-role '((t :inherit font-lock-function-name-face :weight bold))
  "Face of the names of those who speak.")

(defface duologue-notice '((t :inherit shadow))
  "Face of what Emacs says in a conversation, and of reasoning.")

(defface duologue-question '((t :inherit warning))
  "Face of a tool call that waits for a decision.")

;;;; The process

(cl-defstruct (duologue--chat (:constructor duologue--make-chat))
  "A conversation."
  session buffer prompt process
  ;; Where its processes run: paths in `duologue-options' may be relative.
  folder
  ;; Chunks that have not been handled, newest first; the bytes of the line that is not complete, newest first.
  (chunks nil) (line nil) (line-bytes 0) timer
  (stderr "") greeted closing last-error (deaths 0) catching-up warning
  (requests 0) (pending (make-hash-table :test 'equal))
  ;; The view: id -> entity; all of them, newest first; entity -> how it has changed since it was drawn.
  (entities (make-hash-table :test 'equal)) (order nil) (dirty (make-hash-table :test 'eq)) (drawing nil)
  (ordinal 0) (ordinal-text "0") degraded
  ;; `editing' is the message that the prompt takes the place of, and `draft' what was being written before.
  questions model usage retry bytes-max editing (draft "") (notices 0))

(cl-defstruct (duologue--entity (:constructor duologue--make-entity))
  "A message, a tool call with its result, or a notice."
  ;; `before' is the kind of the one before it.
  id kind before (status "") name (pieces nil) (bytes 0) (fresh nil) (note "") result (result-status "") asked
  ;; Where it is in the buffer, and whether what is folded is shown.
  start end fold open drawn-open)

(cl-defstruct (duologue--pending (:constructor duologue--make-pending))
  "A request that has no done yet."
  ;; `edited' is the message that its prompt takes the place of.
  kind text edited accepted failure then)

(defvar duologue--chats nil
  "The conversations that are open.")

(defvar duologue--processes nil
  "The processes that have not ended, also of conversations that are closed.")

(defvar-local duologue--chat nil
  "The conversation of this buffer.")

(defconst duologue--line-bytes-max (* 64 1024 1024)
  "A longer line is dropped: it is far above what a frame needs.")

(defconst duologue--slice-seconds 0.02
  "How long frames are handled before keys are.")

(defconst duologue--deaths-max 3
  "How often a process is started again without an answer in between.")

(defconst duologue--arguments
  '("rpc"
    "--on-busy=queue" ; a prompt that is sent during an answer waits for its turn
    "--final-snapshot=none" ; events keep the view up to date
    "--patch-mode=append"
    "--patch-fields=lean"
    "--events=*" ; also where a variable names others
    "--extensions=approvals,edit,history,retries,store,switch-model,targeted-cancel,tool-servers,usage")
  "Options that this package relies on.")

(defun duologue--store ()
  "Return the file in which conversations are stored, or nil."
  (cond ((not (eq duologue-store 'default)) (and duologue-store (expand-file-name duologue-store)))
        ((not (member (getenv "DUOLOGUE_STORE") '(nil ""))) (getenv "DUOLOGUE_STORE"))
        (t (expand-file-name "duologue/sessions.db"
                             (if (member (getenv "XDG_DATA_HOME") '(nil ""))
                                 "~/.local/share"
                               (getenv "XDG_DATA_HOME"))))))

(defun duologue--command-line (chat)
  "Return the words that start the process of CHAT."
  (let ((store (duologue--store)))
    (append duologue-command duologue--arguments
            (and store (list "--store" store "--session" (duologue--chat-session chat)))
            duologue-options)))

(defun duologue--start (chat)
  "Start the process of CHAT."
  (setf (duologue--chat-greeted chat) nil
        (duologue--chat-last-error chat) nil
        (duologue--chat-chunks chat) nil
        (duologue--chat-line chat) nil
        (duologue--chat-line-bytes chat) 0
        (duologue--chat-stderr chat) "")
  ;; The buffer that is current when a process is started again may be any.
  (let ((default-directory (duologue--chat-folder chat)))
    (if (executable-find (car duologue-command))
        (duologue--start-process chat)
      (duologue--notice chat (format "%s can't be started: it is not found.  Is it installed?"
                                     (car duologue-command)))))
  (duologue--changed chat))

(defun duologue--start-process (chat)
  "Make the process of CHAT."
  (let ((read-process-output-max (max read-process-output-max (* 64 1024)))
        (process-adaptive-read-buffering nil)
        (command (duologue--command-line chat)))
    (condition-case why
        ;; A pipe and not a terminal, which would echo and translate. The bytes are decoded line by line: a chunk may
        ;; end within a character. Standard error is apart, else a warning would be a part of a frame.
        (let ((process (make-process
                        :name "duologue" :command command :connection-type 'pipe :coding 'binary :noquery t
                        :stderr (duologue--stderr-pipe chat)
                        :filter (lambda (_ chunk) (duologue--take-chunk chat chunk))
                        :sentinel (lambda (process _) (duologue--sentinel chat process)))))
          (push process duologue--processes)
          (setf (duologue--chat-process chat) process))
      (error (duologue--notice chat (format "%s can't be started: %s"
                                            (car command) (error-message-string why)))))))

(defun duologue--stderr-pipe (chat)
  "Return a process that takes the standard error of CHAT."
  (let ((rest ""))
    (make-pipe-process
     :name "duologue-stderr" :noquery t :coding 'utf-8-unix
     ;; The default one would write into a buffer.
     :sentinel #'ignore
     :filter (lambda (_ text)
               (let ((all (concat (duologue--chat-stderr chat) text)))
                 (setf (duologue--chat-stderr chat)
                       (substring all (max 0 (- (length all) 8192)))))
               (setq rest (concat rest text))
               (while (string-match "\\`\\(.*\\)\n" rest)
                 (let ((line (match-string 1 rest)))
                   (setq rest (substring rest (match-end 0)))
                   (when (string-match "\\` WARN \\(.*\\)" line)
                     (duologue--warn chat (match-string 1 line)))))))))

(defun duologue--warn (chat warning)
  "Show WARNING of duologue in CHAT, once."
  (unless (equal warning (duologue--chat-warning chat))
    (setf (duologue--chat-warning chat) warning)
    (duologue--notice chat warning)
    (duologue--changed chat)))

(defun duologue--take-chunk (chat chunk)
  "Queue CHUNK of CHAT.
A filter may be called within another one, as while a request is written; so it
handles nothing itself, and lines are handled in their order."
  (push chunk (duologue--chat-chunks chat))
  (duologue--handle-soon chat))

(defun duologue--handle-soon (chat)
  "Have a timer handle the chunks of CHAT."
  (unless (duologue--chat-timer chat)
    (setf (duologue--chat-timer chat)
          (run-at-time 0 nil (lambda ()
                               (setf (duologue--chat-timer chat) nil)
                               (duologue--handle-chunks chat))))))

(defun duologue--handle-chunks (chat)
  "Handle the chunks of CHAT, for as long as nobody notices."
  (let ((chunks (nreverse (duologue--chat-chunks chat)))
        (deadline (+ (float-time) duologue--slice-seconds)))
    (setf (duologue--chat-chunks chat) nil)
    (while (and chunks (< (float-time) deadline))
      (duologue--feed chat (pop chunks)))
    (when chunks
      ;; Chunks that came meanwhile are newer.
      (setf (duologue--chat-chunks chat) (append (duologue--chat-chunks chat) (nreverse chunks)))
      (duologue--handle-soon chat))))

(defun duologue--feed (chat chunk)
  "Handle the lines that CHUNK completes in CHAT."
  (let ((from 0) at)
    (while (setq at (string-search "\n" chunk from))
      (duologue--add-bytes chat (substring chunk from at))
      (duologue--finish-line chat)
      (setq from (1+ at)))
    (duologue--add-bytes chat (substring chunk from))))

(defun duologue--add-bytes (chat bytes)
  "Add BYTES to the line of CHAT that is not complete."
  (cl-incf (duologue--chat-line-bytes chat) (length bytes))
  (if (> (duologue--chat-line-bytes chat) duologue--line-bytes-max)
      (setf (duologue--chat-line chat) nil)
    (push bytes (duologue--chat-line chat))))

(defun duologue--finish-line (chat)
  "Handle the line of CHAT that is complete now."
  (let ((is-too-long (> (duologue--chat-line-bytes chat) duologue--line-bytes-max))
        (line (apply #'concat (nreverse (duologue--chat-line chat)))))
    (setf (duologue--chat-line chat) nil
          (duologue--chat-line-bytes chat) 0)
    (cond (is-too-long
           (duologue--lost chat (format "a line of more than %d bytes was dropped" duologue--line-bytes-max)))
          ((not (string-empty-p line))
           (duologue--handle-line chat line)))))

(defun duologue--without-nul (line)
  "Return LINE with U+001A for U+0000, which Emacs before version 30 can't read.
Both are one byte, so that offsets in texts stay right."
  (let ((at (string-search "\\u0000" line)))
    (when at
      (setq line (copy-sequence line)))
    (while at
      ;; The backslash of an escape has an even number of them before it.
      (let ((start at))
        (while (and (> start 0) (eq (aref line (1- start)) ?\\))
          (cl-decf start))
        (when (cl-evenp (- at start))
          (aset line (+ at 4) ?1)
          (aset line (+ at 5) ?a)))
      (setq at (string-search "\\u0000" line (+ at 6))))
    line))

(defun duologue--handle-line (chat line)
  "Handle LINE, the bytes of a frame of CHAT."
  (let ((frame (condition-case nil
                   (json-parse-string (decode-coding-string (duologue--without-nul line) 'utf-8-unix)
                                      :object-type 'alist :array-type 'list :null-object nil :false-object nil)
                 (error 'none))))
    (if (not (listp frame))
        (duologue--lost chat "a line is not JSON")
      ;; A defect in what handles one frame must not end the reading of all.
      (condition-case why
          (duologue--frame chat frame)
        (error (message "duologue: a defect of the package: %s" (error-message-string why))))
      (duologue--changed chat))))

(defun duologue--clean (text)
  "Return TEXT with U+FFFD for what is no character of Unicode."
  (if (seq-some (lambda (char) (or (> char #x10ffff) (<= #xd800 char #xdfff))) text)
      (apply #'string (mapcar (lambda (char) (if (or (> char #x10ffff) (<= #xd800 char #xdfff)) #xfffd char)) text))
    text))

(defun duologue--write (chat &rest requests)
  "Write REQUESTS to the process of CHAT, in one piece."
  ;; Emacs waits here while the process takes nothing; duologue takes requests at any time.
  (let ((text (mapconcat (lambda (request) (concat (json-serialize request) "\n")) requests "")))
    (condition-case nil
        (process-send-string (duologue--chat-process chat)
                             (if (multibyte-string-p text) (encode-coding-string text 'utf-8-unix) text))
      (error nil)))) ; It has ended; the sentinel says so.

(defun duologue--request (chat request &rest pending)
  "Send REQUEST, a plist, to CHAT.
PENDING are members of its `duologue--pending'.  Return its id, or nil if it
could not be sent."
  (unless (duologue--chat-process chat)
    (duologue--start chat))
  (when (duologue--chat-process chat)
    (let ((id (format "%d-%d-%d" (emacs-pid) (floor (* 1000 (float-time))) (cl-incf (duologue--chat-requests chat)))))
      (puthash id (apply #'duologue--make-pending pending) (duologue--chat-pending chat))
      (duologue--write chat (append (list :requestId id) request))
      (duologue--changed chat)
      id)))

(defun duologue--lost (chat why)
  "Frames of CHAT were lost for the reason WHY: ask for what has changed."
  (duologue--notice chat (format "What duologue wrote could not be read (%s); the conversation is asked for again."
                                 why))
  ;; Once: an answer that can't be read either must not be asked for without end.
  (unless (duologue--chat-catching-up chat)
    (setf (duologue--chat-catching-up chat) t)
    (duologue--request chat (list :snapshot (list :sinceOrdinal (duologue--chat-ordinal-text chat)))
                       :then (lambda (_) (setf (duologue--chat-catching-up chat) nil))))
  (duologue--changed chat))

(defun duologue--sentinel (chat process)
  "Handle the end of PROCESS of CHAT, once its last lines are handled."
  (unless (process-live-p process)
    (setq duologue--processes (delq process duologue--processes))
    (if (or (duologue--chat-chunks chat) (accept-process-output process 0))
        (run-at-time 0.01 nil #'duologue--sentinel chat process)
      (when (eq process (duologue--chat-process chat))
        (setf (duologue--chat-process chat) nil)
        (unless (duologue--chat-closing chat)
          (duologue--exited chat process))))))

(defun duologue--exited (chat process)
  "Say that PROCESS of CHAT has ended, and start it again if that helps."
  (let ((pending (duologue--chat-pending chat))
        (how (format (if (eq (process-status process) 'signal) "was ended by signal %d" "ended with status %d")
                     (process-exit-status process))))
    (setf (duologue--chat-pending chat) (make-hash-table :test 'equal)
          (duologue--chat-catching-up chat) nil)
    (duologue--drop-questions chat)
    (cl-incf (duologue--chat-deaths chat))
    (cond ((or (not (duologue--chat-greeted chat)) (duologue--chat-last-error chat))
           (unless (duologue--chat-last-error chat)
             (duologue--notice chat (format "duologue %s before it could answer.\n%s" how
                                            (string-trim (duologue--chat-stderr chat)))))
           (duologue--notice chat "The next prompt starts duologue again."))
          ((not (duologue--store))
           (setf (duologue--chat-ordinal chat) 0)
           (duologue--notice
            chat (format "duologue %s.  Nothing is stored: the next prompt begins a new conversation." how)))
          ((> (duologue--chat-deaths chat) duologue--deaths-max)
           (duologue--notice chat (format "duologue %s again.  The next prompt starts it." how)))
          (t
           ;; With the same command line: --session resumes what is stored, and the snapshot brings the view up to
           ;; date.
           (duologue--notice chat (format "duologue %s and was started again.  The conversation goes on." how))
           (duologue--start chat)))
    (maphash (lambda (_ request) (duologue--give-back chat request)) pending)
    (duologue--changed chat)))

(defun duologue--close (chat)
  "End CHAT: stop what it does, and then its process."
  (setf (duologue--chat-closing chat) t
        duologue--chats (delq chat duologue--chats))
  (let ((process (duologue--chat-process chat)))
    (when (process-live-p process)
      ;; In one write: nothing that waits begins in between.
      (duologue--write chat '(:requestId "close-1" :cancel (:waiting t)) '(:requestId "close-2" :cancel nil)
                       '(:requestId "close-3" :shutdown nil))
      (condition-case nil (process-send-eof process) (error nil)))))

(defun duologue--wait-for-end (processes seconds)
  "Wait at most SECONDS for PROCESSES to end; return those that have not."
  (let ((deadline (+ (float-time) seconds)))
    (while (and (seq-some #'process-live-p processes) (< (float-time) deadline))
      (accept-process-output nil 0.01))
    (seq-filter #'process-live-p processes)))

(defun duologue--end-all ()
  "End all processes, for the end of Emacs: ask, then send SIGTERM, then SIGKILL."
  (mapc #'duologue--close duologue--chats)
  (let ((processes (duologue--wait-for-end duologue--processes 2)))
    (dolist (process processes)
      (signal-process process 'SIGTERM))
    (dolist (process (duologue--wait-for-end processes 0.5))
      (signal-process process 'SIGKILL))))

(add-hook 'kill-emacs-hook #'duologue--end-all)

;;;; The view

(defun duologue--frame (chat frame)
  "Take FRAME into CHAT."
  (let-alist frame
    (let ((id (or .requestId "")))
      (cond (.hello (duologue--hello chat .hello))
            (.uiEvent (duologue--event chat id .uiEvent))
            ;; The first snapshot names no request and is the whole conversation.
            ((assq 'snapshot frame) (duologue--snapshot chat .snapshot (equal id "")))
            (.error (duologue--failed chat id .error))
            (.done (duologue--ended chat id .done.status))))))

(defun duologue--hello (chat hello)
  "Take the capabilities of HELLO into CHAT."
  (setf (duologue--chat-greeted chat) t)
  (dolist (word (alist-get 'capabilities hello))
    (when (string-match "\\`\\([a-z-]+\\)=\\(\\(?:.\\|\n\\)*\\)" word)
      (let ((value (match-string 2 word)))
        (pcase (match-string 1 word)
          ("model" (setf (duologue--chat-model chat) value))
          ("max-request-bytes" (setf (duologue--chat-bytes-max chat) (string-to-number value)))
          ("config-error" (duologue--notice chat value)))))))

(defun duologue--entity (chat id kind)
  "Return the entity ID of CHAT; make one of KIND if there is none."
  (or (gethash id (duologue--chat-entities chat))
      (let* ((last (car (duologue--chat-order chat)))
             (entity (duologue--make-entity :id id :kind kind :before (and last (duologue--entity-kind last)))))
        (puthash id entity (duologue--chat-entities chat))
        (push entity (duologue--chat-order chat))
        (duologue--touch chat entity 'changed)
        entity)))

(defun duologue--touch (chat entity how)
  "Note HOW ENTITY of CHAT has changed: `grown', at its end, or `changed'."
  (unless (and (eq how 'grown) (gethash entity (duologue--chat-dirty chat)))
    (puthash entity how (duologue--chat-dirty chat))))

(defun duologue--text (entity)
  "Return the text of ENTITY.
Pieces are joined here, and not with each patch, which would copy a long text
each time."
  (when (cdr (duologue--entity-pieces entity))
    (setf (duologue--entity-pieces entity) (list (apply #'concat (reverse (duologue--entity-pieces entity))))))
  (or (car (duologue--entity-pieces entity)) ""))

(defun duologue--set-text (chat entity text)
  "Make TEXT that of ENTITY of CHAT."
  (unless (equal text (duologue--text entity))
    (setf (duologue--entity-pieces entity) (list text)
          (duologue--entity-bytes entity) (string-bytes text))
    (duologue--touch chat entity 'changed)))

(defun duologue--patch (chat id kind payload piece)
  "Put PIECE after the first bytes of the text of ID, of KIND, in CHAT.
PAYLOAD has the offset, which counts bytes of UTF-8; Emacs counts characters."
  (let* ((entity (duologue--entity chat id kind))
         (offset (string-to-number (or (alist-get 'offset payload) "0"))))
    (if (string-match-p "_\\(?:SNAPSHOT\\|REPLACE\\)\\'" (or (alist-get 'mode payload) ""))
        (duologue--set-text chat entity piece)
      (unless (= offset (duologue--entity-bytes entity))
        (let* ((bytes (encode-coding-string (duologue--text entity) 'utf-8-unix))
               (kept (substring bytes 0 (min offset (length bytes)))))
          (duologue--set-text chat entity (decode-coding-string kept 'utf-8-unix))))
      (push piece (duologue--entity-pieces entity))
      (push piece (duologue--entity-fresh entity))
      (cl-incf (duologue--entity-bytes entity) (string-bytes piece))
      (duologue--touch chat entity 'grown))))

(defun duologue--put (chat entity &rest slots)
  "Set SLOTS of ENTITY of CHAT: names and values."
  (cl-loop for (slot value) on slots by #'cddr
           unless (equal (cl-struct-slot-value 'duologue--entity slot entity) value)
           do (setf (cl-struct-slot-value 'duologue--entity slot entity) value)
           and do (duologue--touch chat entity 'changed)))

(defun duologue--put-message (chat payload)
  "Take the message of PAYLOAD into CHAT."
  (let-alist payload
    (let ((entity (duologue--entity chat .messageId (intern (or .role "assistant")))))
      (duologue--put chat entity 'status (or .status "") 'note (or .error ""))
      (duologue--set-text chat entity (or .text "")))))

(defun duologue--put-call (chat payload)
  "Take the tool call of PAYLOAD into CHAT."
  (let-alist payload
    (let ((entity (duologue--entity chat .toolCallId 'tool)))
      (duologue--put chat entity 'status (or .status "")
                     'name (or .toolName (duologue--entity-name entity)))
      (when .input
        (duologue--set-text chat entity .input)))))

(defun duologue--put-result (chat payload)
  "Take the result of PAYLOAD into CHAT."
  (let-alist payload
    (duologue--put chat (duologue--entity chat .toolCallId 'tool)
                   'result (or .result "") 'result-status (or .status ""))))

(defun duologue--add-question (chat payload)
  "Note that the call of PAYLOAD waits for a decision in CHAT."
  (let-alist payload
    (duologue--drop-question chat .toolCallId)
    (setf (duologue--chat-questions chat) (append (duologue--chat-questions chat) (list payload)))
    (let ((entity (duologue--entity chat .toolCallId 'tool)))
      (duologue--put chat entity 'asked t 'name .toolName)
      (duologue--set-text chat entity (or .input "")))))

(defun duologue--drop-question (chat call)
  "Note that CALL of CHAT waits for no decision."
  (setf (duologue--chat-questions chat)
        (seq-remove (lambda (payload) (equal (alist-get 'toolCallId payload) call)) (duologue--chat-questions chat)))
  (let ((entity (gethash call (duologue--chat-entities chat))))
    (when entity
      (duologue--put chat entity 'asked nil))))

(defun duologue--drop-questions (chat)
  "Drop all questions of CHAT."
  (dolist (payload (duologue--chat-questions chat))
    (duologue--drop-question chat (alist-get 'toolCallId payload))))

(defun duologue--remove (chat id)
  "Take the entity ID out of CHAT."
  (let ((entity (gethash id (duologue--chat-entities chat))))
    (when entity
      (remhash id (duologue--chat-entities chat))
      (remhash entity (duologue--chat-dirty chat))
      (setf (duologue--chat-order chat) (delq entity (duologue--chat-order chat)))
      (duologue--erase chat entity))))

(defun duologue--notice (chat text)
  "Add TEXT, which is no part of the conversation, to CHAT."
  (let ((id (format "notice-%d" (cl-incf (duologue--chat-notices chat)))))
    (duologue--set-text chat (duologue--entity chat id 'notice) text)))

(defun duologue--advance (chat ordinal)
  "Note that CHAT has the event of ORDINAL."
  (when (>= (string-to-number ordinal) (duologue--chat-ordinal chat))
    (setf (duologue--chat-ordinal chat) (string-to-number ordinal)
          (duologue--chat-ordinal-text chat) ordinal)))

(defun duologue--event (chat id event)
  "Take EVENT, of the request ID, into CHAT."
  (let-alist event
    ;; Two events may share an ordinal; applied twice they change nothing.
    (when (>= (string-to-number (or .ordinal "0")) (duologue--chat-ordinal chat))
      (duologue--advance chat (or .ordinal "0"))
      (when (equal .name "ChatUserMessageAccepted")
        (let ((pending (gethash id (duologue--chat-pending chat))))
          (when pending
            (setf (duologue--pending-accepted pending) t))))
      (duologue--apply chat (car (last (split-string (or (alist-get '@type .payload) "") "/"))) .payload))))

(defun duologue--apply (chat type payload)
  "Apply PAYLOAD of TYPE to CHAT.
Types that are not known here change nothing."
  (let-alist payload
    (pcase type
      ((or "pinocchio.chatapp.v1.ChatUserMessageAccepted" "pinocchio.chatapp.v1.ChatTextSegmentFinished"
           "pinocchio.chatapp.v1.ChatReasoningSegmentFinished")
       (duologue--put-message chat payload))
      ("pinocchio.chatapp.v1.ChatTextSegmentStarted"
       (duologue--put chat (duologue--entity chat .messageId 'assistant) 'status .status))
      ("pinocchio.chatapp.v1.ChatReasoningSegmentStarted"
       (duologue--put chat (duologue--entity chat .messageId 'thinking) 'status .status))
      ("pinocchio.chatapp.v1.ChatTextPatch" (duologue--patch chat .messageId 'assistant payload (or .text "")))
      ("pinocchio.chatapp.v1.ChatReasoningPatch" (duologue--patch chat .messageId 'thinking payload (or .text "")))
      ("pinocchio.chatapp.v1.ChatToolArgumentsPatch"
       (duologue--patch chat .toolCallId 'tool payload (or .arguments "")))
      ((or "pinocchio.chatapp.v1.ChatToolCallStarted" "pinocchio.chatapp.v1.ChatToolCallRequested"
           "pinocchio.chatapp.v1.ChatToolExecutionStarted" "pinocchio.chatapp.v1.ChatToolCallFinished")
       (duologue--put-call chat payload))
      ("pinocchio.chatapp.v1.ChatToolResultReady" (duologue--put-result chat payload))
      ("pinocchio.chatapp.v1.ChatRunFailed"
       (duologue--set-text chat (duologue--entity chat .messageId 'error) (or .error "")))
      ("duologue.tools.v1.ToolApprovalRequested" (duologue--add-question chat payload) (duologue--ask-when-idle))
      ("duologue.tools.v1.ToolApprovalResolved" (duologue--drop-question chat .toolCallId))
      ("duologue.tools.v1.ToolServerChanged"
       (when (member .state '("UNAVAILABLE" "GONE"))
         (duologue--notice chat (format "The tools of %s are not there: %s" .server (or .reason "")))))
      ("duologue.session.v1.UsageTotals" (setf (duologue--chat-usage chat) .session))
      ("duologue.provider.v1.ModelSwitched" (setf (duologue--chat-model chat) .model))
      ("duologue.provider.v1.RetryScheduled"
       (setf (duologue--chat-retry chat) (format "attempt %s of %s" .attempt .attemptsMax)))
      ("duologue.provider.v1.RetryStarted" (setf (duologue--chat-retry chat) nil))
      ("duologue.provider.v1.AnswerTruncated"
       (duologue--notice chat (pcase .finishClass
                                ("max_tokens" "The answer was cut off at a token limit")
                                ("content_filter" "The provider withheld the answer, or the rest of it")
                                (_ "The answer was cut off"))))
      ;; Ordinals after the first missing one are given out again by the process that goes on.
      ("duologue.session.v1.StoreDegraded" (setf (duologue--chat-degraded chat) t))
      ("duologue.session.v1.TurnDropped"
       (dolist (id (append .messageIds .toolCallIds))
         (duologue--drop-question chat id)
         (duologue--remove chat id))))))

(defun duologue--snapshot (chat snapshot is-whole)
  "Take SNAPSHOT into CHAT.  If IS-WHOLE, what it does not have is gone.
What did not change since the last event stays as it is, so that nobody who
reads it is disturbed."
  (let ((before (if (duologue--chat-degraded chat) -1 (duologue--chat-ordinal chat)))
        (seen (make-hash-table :test 'equal)))
    (when is-whole
      (duologue--drop-questions chat))
    (dolist (entity (alist-get 'entities snapshot))
      (let-alist entity
        ;; A call has its result and its question with it.
        (let ((id (pcase .kind
                    ("ChatToolResult" (string-remove-suffix ":result" .id))
                    ("ToolApproval" (string-remove-suffix ":approval" .id))
                    (_ .id))))
          (puthash id t seen)
          (cond (.tombstone (duologue--remove chat id))
                ((or (not (gethash id (duologue--chat-entities chat))) (equal .kind "ToolApproval")
                     (>= (string-to-number (or .lastEventOrdinal "0")) before))
                 (pcase .kind
                   ("ChatMessage" (duologue--put-message chat .payload))
                   ("ChatToolCall" (duologue--put-call chat .payload))
                   ("ChatToolResult" (duologue--put-result chat .payload))
                   ("ToolApproval" (duologue--add-question chat .payload) (duologue--ask-when-idle))))))))
    (when is-whole
      (dolist (entity (copy-sequence (duologue--chat-order chat)))
        (unless (or (eq (duologue--entity-kind entity) 'notice) (gethash (duologue--entity-id entity) seen))
          (duologue--remove chat (duologue--entity-id entity))))
      (setf (duologue--chat-degraded chat) nil
            (duologue--chat-ordinal chat) 0))
    (duologue--advance chat (or (alist-get 'snapshotOrdinal snapshot) "0"))))

(defconst duologue--said-chars 100
  "Characters by whose presence in a message a text counts as said.
A message has a long text cut.")

(defun duologue--error-text (failure)
  "Return the message of FAILURE, and what that does not have of its detail.
After the class of a failure these are parts, up to a rest that is said; a
detail without a class is one reason."
  (let* ((message (or (alist-get 'message failure) ""))
         (detail (or (alist-get 'detail failure) ""))
         (case-fold-search nil)
         (class (and (string-match "\\`\\([a-z_]+\\):\\(?: \\|\\'\\)" detail) (match-string 1 detail)))
         (rest (string-trim (if class (substring detail (match-end 0)) detail)))
         (is-said (lambda (text)
                    (string-search (downcase (seq-take text duologue--said-chars)) (downcase message))))
         added)
    (while (not (funcall is-said rest))
      (let* ((end (and class (string-search ": " rest)))
             (part (string-trim (substring rest 0 end))))
        (unless (funcall is-said part)
          (push part added))
        (setq rest (if end (string-trim (substring rest (+ end 2))) ""))))
    (if added
        (format "%s (%s)" message (string-join (append (and class (list class)) (nreverse added)) ": "))
      message)))

(defun duologue--failed (chat id failure)
  "Take FAILURE of the request ID into CHAT."
  (let-alist failure
    (let ((pending (gethash id (duologue--chat-pending chat))))
      (when pending
        (setf (duologue--pending-failure pending) failure)))
    (when (and .terminal (not (equal .code "interrupted")))
      (setf (duologue--chat-last-error chat) failure))
    ;; The error of a run is a message of the conversation.
    (unless (member .code '("run_failed" "unknown_tool_call" "no_active_request"))
      (duologue--notice chat (format "%s: %s" .code (duologue--error-text failure))))))

(defun duologue--ended (chat id status)
  "Note that the request ID of CHAT has ended with STATUS."
  (let ((pending (gethash id (duologue--chat-pending chat))))
    (remhash id (duologue--chat-pending chat))
    (setf (duologue--chat-retry chat) nil)
    (when pending
      (if (equal status "ok")
          (setf (duologue--chat-deaths chat) 0)
        (duologue--give-back chat pending))
      (when (duologue--pending-then pending)
        (funcall (duologue--pending-then pending) status)))))

(defun duologue--give-back (chat pending)
  "Put the prompt of PENDING back into the prompt of CHAT unless it was asked.
Nothing that was typed is lost."
  (when (and (duologue--pending-text pending) (not (duologue--pending-accepted pending))
             (not (duologue--chat-closing chat)))
    (with-current-buffer (duologue--prompt chat)
      (when (and (duologue--pending-edited pending)
                 (gethash (duologue--pending-edited pending) (duologue--chat-entities chat))
                 (member (buffer-string) (list "" (duologue--chat-draft chat))))
        (duologue--start-editing chat (duologue--pending-edited pending))
        (erase-buffer)))
    (duologue--put-back chat (duologue--pending-text pending))))

(defun duologue--put-back (chat text)
  "Put TEXT into the prompt of CHAT, above what is written."
  (with-current-buffer (duologue--prompt chat)
    (goto-char (point-min))
    (insert text (if (= (point-max) (point)) "" "\n\n"))))

(defun duologue--runs (chat)
  "Return the number of submits of CHAT that have no done yet."
  (let ((count 0))
    (maphash (lambda (_ pending) (when (eq (duologue--pending-kind pending) 'run) (cl-incf count)))
             (duologue--chat-pending chat))
    count))

;;;; The buffers

(defconst duologue--draw-seconds 0.05
  "Frames come faster than anybody reads.")

(defconst duologue--row-max 2000
  "Characters after which a line is broken: Emacs shows very long lines slowly.
The line feeds that are inserted for this are not copied.")

(defconst duologue--result-max (* 64 1024)
  "How much of a result is shown.
The arguments of a call are shown whole: a person decides by them.")

(defun duologue--changed (chat)
  "Draw CHAT soon, and once for all that comes until then."
  (unless (duologue--chat-drawing chat)
    (setf (duologue--chat-drawing chat)
          (run-at-time duologue--draw-seconds nil
                       (lambda ()
                         (setf (duologue--chat-drawing chat) nil)
                         (duologue--draw chat))))))

(defun duologue--draw (chat)
  "Draw the entities of CHAT that have changed."
  (when (buffer-live-p (duologue--chat-buffer chat))
    (with-current-buffer (duologue--chat-buffer chat)
      (let* ((dirty (duologue--chat-dirty chat))
             (following (duologue--followers))
             (inhibit-read-only t))
        (setf (duologue--chat-dirty chat) (make-hash-table :test 'eq))
        (save-excursion
          (unless (hash-table-empty-p dirty)
            (dolist (entity (reverse (duologue--chat-order chat)))
              (let ((how (gethash entity dirty)))
                (when how
                  (duologue--draw-entity entity how))))))
        (dolist (window following)
          (set-window-point window (point-max)))
        (set-buffer-modified-p nil)
        (force-mode-line-update)))))

(defun duologue--followers ()
  "Return the windows whose point is at the end: they follow the answer.
Not while there is a region or a search."
  (unless (or (bound-and-true-p isearch-mode) (region-active-p))
    (seq-filter (lambda (window) (= (window-point window) (point-max)))
                (get-buffer-window-list nil nil t))))

(defun duologue--draw-entity (entity how)
  "Draw ENTITY; HOW is `grown' or `changed'."
  (if (and (eq how 'grown) (duologue--entity-start entity)
           (memq (duologue--entity-kind entity) '(assistant thinking))
           (equal (duologue--entity-status entity) "streaming"))
      (duologue--grow entity)
    (duologue--redraw entity))
  (setf (duologue--entity-fresh entity) nil))

(defun duologue--grow (entity)
  "Add what is new at the end of ENTITY, before the blank line after it."
  (goto-char (- (duologue--entity-end entity) 2))
  (let ((from (point)))
    (duologue--insert-rows (apply #'concat (reverse (duologue--entity-fresh entity))))
    (put-text-property from (point) 'duologue-entity entity)
    (when (eq (duologue--entity-kind entity) 'thinking)
      (duologue--fold entity from (point)))))

(defun duologue--insert-rows (text)
  "Insert TEXT, with breaks in lines that are too long."
  (let ((text (string-replace "\r" "" text)) (from 0))
    (while (< from (length text))
      (let* ((room (- duologue--row-max (- (point) (line-beginning-position))))
             (at (string-search "\n" text from))
             (to (min (if at (1+ at) (length text)) (+ from (max room 0)))))
        (if (<= room 0)
            (insert (propertize "\n" 'duologue-soft t))
          (insert (substring text from to))
          (setq from to))))))

(defun duologue--redraw (entity)
  "Draw ENTITY anew."
  (let* ((new (not (duologue--entity-start entity)))
         (start (if new (point-max) (marker-position (duologue--entity-start entity))))
         (old (if new "" (buffer-substring-no-properties start (duologue--entity-end entity))))
         (text (with-temp-buffer
                 (duologue--insert-entity entity)
                 (put-text-property (point-min) (point-max) 'duologue-entity entity)
                 (buffer-string))))
    (duologue--replace start old text)
    (if new
        (setf (duologue--entity-start entity) (copy-marker start t)
              (duologue--entity-end entity) (copy-marker (+ start (length text))))
      (set-marker (duologue--entity-start entity) start)
      (set-marker (duologue--entity-end entity) (+ start (length text))))))

(defun duologue--replace (start old new)
  "Replace OLD, which is at START, by NEW where they differ.
What is equal stays, and with it the points that are in it."
  (let* ((before (duologue--common-prefix old new))
         (after (min (duologue--common-prefix (reverse old) (reverse new))
                     (- (min (length old) (length new)) before)))
         (at 0))
    (goto-char (+ start before))
    (delete-region (point) (+ start (- (length old) after)))
    (insert (substring new before (- (length new) after)))
    ;; The properties are those of NEW everywhere.
    (while (< at (length new))
      (let ((next (or (next-property-change at new) (length new))))
        (set-text-properties (+ start at) (+ start next) (text-properties-at at new))
        (setq at next)))))

(defun duologue--common-prefix (one other)
  "Return how many characters ONE and OTHER begin with."
  (let ((differ (compare-strings one nil nil other nil nil)))
    (if (eq differ t) (length one) (1- (abs differ)))))

(defun duologue--erase (chat entity)
  "Take ENTITY out of the buffer of CHAT."
  (when (and (duologue--entity-start entity) (buffer-live-p (duologue--chat-buffer chat)))
    (with-current-buffer (duologue--chat-buffer chat)
      (let ((inhibit-read-only t))
        (delete-region (duologue--entity-start entity) (duologue--entity-end entity))))))

(defun duologue--insert-entity (entity)
  "Insert what is shown of ENTITY, and a blank line."
  (let ((kind (duologue--entity-kind entity)))
    (cond ((eq kind 'user) (insert (propertize "You" 'face 'duologue-role) "\n\n"))
          ((and (memq kind '(assistant thinking tool))
                (not (memq (duologue--entity-before entity) '(assistant thinking tool))))
           (insert (propertize "Model" 'face 'duologue-role) "\n\n")))
    (pcase kind
      ('thinking (duologue--insert-thinking entity))
      ('tool (duologue--insert-tool entity))
      ('error (insert (propertize (concat "Error: " (duologue--visible (duologue--text entity))) 'face 'error)))
      ('notice (insert (propertize (duologue--visible (duologue--text entity)) 'face 'duologue-notice)))
      (_ (duologue--insert-rows (duologue--text entity))
         (duologue--insert-note entity)))
    (insert "\n\n")))

(defun duologue--insert-note (entity)
  "Insert how ENTITY ended, unless it ended well."
  (let* ((status (car (member (duologue--entity-status entity) '("stopped" "failed"))))
         (parts (remove "" (delq nil (list status (duologue--entity-note entity))))))
    (when parts
      (insert (propertize (format "\n(%s)" (duologue--short (string-join parts ": ") 300))
                          'face 'duologue-notice)))))

(defun duologue--insert-thinking (entity)
  "Insert the reasoning of ENTITY, folded."
  (insert (propertize (if (equal (duologue--entity-status entity) "streaming") "Thinking" "Thought")
                      'face 'duologue-notice))
  (let ((from (point)))
    (insert "\n")
    (duologue--insert-rows (duologue--text entity))
    (duologue--fold entity from (point))))

(defun duologue--insert-tool (entity)
  "Insert the call ENTITY with its result, folded unless it waits for a decision."
  (let* ((asked (duologue--entity-asked entity))
         (arguments (duologue--text entity))
         (state (cond (asked "waits for a decision")
                      ((equal (duologue--entity-result-status entity) "error") "error")
                      (t (duologue--entity-status entity)))))
    (insert (propertize (format "%s %s · %s" (duologue--short (or (duologue--entity-name entity) "tool") 64)
                                (duologue--short arguments 80) state)
                        'face (cond (asked 'duologue-question) ((equal state "error") 'error) (t 'bold))))
    (let ((from (point)) (result (duologue--entity-result entity)))
      (insert "\n")
      (duologue--insert-rows (duologue--visible arguments))
      (when result
        (insert "\n→ ")
        (duologue--insert-rows (duologue--visible (substring result 0 (min (length result) duologue--result-max))))
        (when (> (length result) duologue--result-max)
          (insert (format "… %d characters more" (- (length result) duologue--result-max)))))
      (duologue--fold entity from (point)))))

(defun duologue--fold (entity from to)
  "Hide the text between FROM and TO of ENTITY, unless it is open."
  (put-text-property from to 'duologue-fold t)
  (put-text-property from to 'face 'duologue-notice)
  (put-text-property from to 'invisible
                     (unless (or (duologue--entity-open entity) (duologue--entity-asked entity)) 'duologue)))

(defun duologue--visible (text)
  "Return TEXT with escapes in place of hidden characters.
Some of them reorder the text around them."
  (replace-regexp-in-string
   "[\0-\10\13-\37\177\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
   (lambda (char) (format "\\\\u{%x}" (aref char 0))) text))

(defun duologue--short (text width)
  "Return TEXT on one line, of at most WIDTH columns."
  (truncate-string-to-width (duologue--visible (string-join (split-string text) " ")) width nil nil "…"))

(defun duologue--copied (from to delete)
  "Return the text between FROM and TO, without the breaks of long lines.
DELETE is that of `filter-buffer-substring-function'."
  (let ((text (buffer-substring--filter from to delete)))
    (apply #'concat (mapcar (lambda (part) (if (get-text-property 0 'duologue-soft part) "" part))
                            (duologue--split-at text 'duologue-soft)))))

(defun duologue--split-at (text property)
  "Split TEXT at each other value of PROPERTY."
  (let ((at 0) parts)
    (while (< at (length text))
      (let ((next (or (next-single-property-change at property text) (length text))))
        (push (substring text at next) parts)
        (setq at next)))
    (nreverse parts)))

(defun duologue--header ()
  "Return the header line of a conversation: model, state, tokens."
  (let ((chat duologue--chat))
    (when chat
      (let ((parts (list (duologue--short (or (duologue--chat-model chat) "duologue") 60)
                         (duologue--state chat)
                         (duologue--usage-text chat))))
        ;; A percent sign would be a format.
        (string-replace "%" "%%" (concat " " (string-join (delq nil parts) " · ")))))))

(defun duologue--state (chat)
  "Return the state of CHAT, or nil if it is idle."
  (let ((runs (duologue--runs chat)) (questions (length (duologue--chat-questions chat))))
    (cond ((not (duologue--chat-process chat)) "not running")
          ((> questions 0) (format "%d call%s: M-x duologue-approve" questions (if (= questions 1) " waits" "s wait")))
          ((duologue--chat-retry chat) (concat "the provider failed, " (duologue--chat-retry chat)))
          ((> runs 1) (format "answering, %d wait" (1- runs)))
          ((= runs 1) "answering"))))

(defun duologue--usage-text (chat)
  "Return the tokens of CHAT, or nil."
  (let-alist (duologue--chat-usage chat)
    (when .inputTokens
      (concat .inputTokens " in, " (or .outputTokens "0") " out"
              (if .cost (format ", %s %s" .cost (or .currency "")) "")))))

(defvar duologue-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'duologue-toggle)
    (define-key map (kbd "RET") #'duologue-approve)
    (define-key map (kbd "r") #'duologue)
    (define-key map (kbd "C-c C-k") #'duologue-stop)
    (define-key map (kbd "C-c C-r") #'duologue-retry)
    map)
  "Keys of a conversation.")

(define-derived-mode duologue-mode special-mode "Duologue"
  "Mode of a conversation.  Its prompt is in a buffer of its own."
  (setq buffer-undo-list t ; An answer is not to be undone.
        header-line-format '(:eval (duologue--header))
        ;; Lines may be long, and their direction is not to be looked for in all of them.
        bidi-inhibit-bpa t
        filter-buffer-substring-function #'duologue--copied)
  (setq-local bidi-paragraph-direction 'left-to-right
              ;; A window that follows shows a screen of text, and not the last line in its middle.
              scroll-conservatively 101)
  (add-to-invisibility-spec '(duologue . t))
  (visual-line-mode)
  (add-hook 'kill-buffer-hook #'duologue--buffer-killed nil t))

(defvar duologue-prompt-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'duologue-send)
    (define-key map (kbd "C-c C-k") #'duologue-stop)
    (define-key map (kbd "C-c C-r") #'duologue-retry)
    map)
  "Keys of a prompt.")

(defconst duologue--prompt-header " C-c C-c sends the prompt, C-c C-k stops the answer"
  "Header line of a prompt.")

(defconst duologue--edit-header " edits the last prompt; M-x duologue-edit leaves it as it is"
  "Header line of a prompt that takes the place of an earlier one.")

(define-derived-mode duologue-prompt-mode text-mode "Prompt"
  "Mode of the prompt that is being written."
  (setq header-line-format duologue--prompt-header))

(defun duologue--buffer-killed ()
  "End the conversation of the buffer that is killed."
  (let ((chat duologue--chat))
    (when (and chat (not (duologue--chat-closing chat)))
      (duologue--close chat)
      (when (buffer-live-p (duologue--chat-prompt chat))
        (kill-buffer (duologue--chat-prompt chat))))))

(defun duologue--open (&optional session)
  "Open the conversation SESSION, or begin one."
  (unless (fboundp 'json-parse-string)
    (user-error "This Emacs is built without JSON support (libjansson), which duologue needs"))
  (or (seq-find (lambda (chat) (equal (duologue--chat-session chat) session)) duologue--chats)
      (let* ((session (or session (format "emacs-%s-%04x" (format-time-string "%Y%m%d-%H%M%S") (random #x10000))))
             (chat (duologue--make-chat :session session :folder default-directory)))
        (setf (duologue--chat-buffer chat) (generate-new-buffer (format "*duologue %s*" session)))
        (with-current-buffer (duologue--chat-buffer chat)
          (duologue-mode)
          (setq duologue--chat chat))
        (duologue--prompt chat)
        (push chat duologue--chats)
        (duologue--start chat)
        chat)))

(defun duologue--prompt (chat)
  "Return the buffer of the prompt of CHAT; make it if it is not live."
  (unless (buffer-live-p (duologue--chat-prompt chat))
    (setf (duologue--chat-editing chat) nil
          (duologue--chat-draft chat) ""
          (duologue--chat-prompt chat)
          (generate-new-buffer (format "*duologue prompt %s*" (duologue--chat-session chat))))
    (with-current-buffer (duologue--chat-prompt chat)
      (duologue-prompt-mode)
      (setq duologue--chat chat
            default-directory (duologue--chat-folder chat))))
  (duologue--chat-prompt chat))

(defun duologue--show (chat)
  "Show CHAT and select its prompt."
  (let ((window (display-buffer (duologue--chat-buffer chat)
                                '((display-buffer-reuse-window display-buffer-pop-up-window)))))
    (when window
      (select-window window)
      (with-selected-window window
        (goto-char (point-max)))))
  (pop-to-buffer (duologue--prompt chat)
                 `((display-buffer-reuse-window display-buffer-below-selected)
                   (window-height . ,duologue-prompt-height)))
  (setq duologue--chats (cons chat (delq chat duologue--chats))))

(defun duologue--current ()
  "Return the conversation of this buffer, or the last one that was shown."
  (or duologue--chat (car duologue--chats) (user-error "There is no conversation; M-x duologue begins one")))

;;;; The commands

(defun duologue--region ()
  "Return the region with its origin in a Markdown fence, or nil."
  (when (use-region-p)
    (let* ((text (substring-no-properties (funcall region-extract-function nil)))
           (first (line-number-at-pos (region-beginning) t))
           (last (line-number-at-pos (region-end) t))
           ;; A region of whole lines ends where the next line begins.  A rectangle has that line.
           (last (if (and (> last first) (eq (char-before (region-end)) ?\n) (not (region-noncontiguous-p)))
                     (1- last)
                   last))
           (longest (apply #'max 2 (mapcar #'length (duologue--matches "`+" text))))
           (fence (make-string (1+ longest) ?`)))
      (format "%s, lines %d to %d:\n\n%s%s\n%s\n%s"
              (if buffer-file-name (file-relative-name buffer-file-name) (buffer-name))
              first last fence (string-remove-suffix "-mode" (symbol-name major-mode)) (string-remove-suffix "\n" text) fence))))

(defun duologue--matches (regexp text)
  "Return all matches of REGEXP in TEXT."
  (let ((at 0) all)
    (while (string-match regexp text at)
      (push (match-string 0 text) all)
      (setq at (match-end 0)))
    all))

(defun duologue--ask (chat prompt &optional edited)
  "Ask PROMPT in CHAT, in place of the message EDITED if it is not nil.
Return whether it is on its way."
  (let* ((text (duologue--clean prompt))
         (most (duologue--chat-bytes-max chat)))
    (when (and most (> (* 2 (string-bytes text)) most) (> (string-bytes (json-serialize text)) most))
      (user-error "The prompt is too long: at most %d bytes can be sent" most))
    (unless (string-blank-p text)
      (duologue--request chat
                         (if edited
                             (list :edit (list :replace (list :messageId edited :prompt text)))
                           (list :submit (list :prompt text)))
                         :kind 'run :text prompt :edited edited))))

(defun duologue--start-editing (chat id)
  "Have the prompt of CHAT take the place of the message ID if that is there."
  (when (gethash id (duologue--chat-entities chat))
    (with-current-buffer (duologue--prompt chat)
      (setf (duologue--chat-editing chat) id
            (duologue--chat-draft chat) (buffer-string))
      (setq header-line-format duologue--edit-header))))

(defun duologue--stop-editing (chat)
  "Have the prompt of CHAT be a new one."
  (setf (duologue--chat-editing chat) nil)
  (with-current-buffer (duologue--prompt chat)
    (setq header-line-format duologue--prompt-header)))

;;;###autoload
(defun duologue ()
  "Show the conversation that was shown last, or begin one.
An active region is put into the prompt."
  (interactive)
  (let ((region (duologue--region)))
    (duologue--show (or duologue--chat (car duologue--chats) (duologue--open)))
    (when region
      (goto-char (point-max))
      (insert region "\n\n"))))

;;;###autoload
(defun duologue-new ()
  "Begin a conversation."
  (interactive)
  (duologue--show (duologue--open)))

;;;###autoload
(defun duologue-ask (prompt)
  "Ask PROMPT, with the active region, in the conversation that was shown last."
  (interactive (list (read-string "Prompt: ")))
  (let* ((region (duologue--region))
         (chat (or duologue--chat (car duologue--chats) (duologue--open)))
         (text (if region (concat prompt "\n\n" region) prompt))
         is-asked)
    (duologue--show chat)
    (unwind-protect
        (setq is-asked (duologue--ask chat text))
      (unless (or is-asked (string-blank-p text))
        (duologue--put-back chat text)))))

(defun duologue-send ()
  "Send the prompt.
It can be had back with undo."
  (interactive)
  (let ((chat (duologue--current)))
    (with-current-buffer (duologue--prompt chat)
      (let ((edited (duologue--chat-editing chat)))
        (when (duologue--ask chat (buffer-substring-no-properties (point-min) (point-max)) edited)
          (duologue--stop-editing chat)
          (undo-boundary)
          (erase-buffer)
          (when edited
            (insert (duologue--chat-draft chat)))
          (undo-boundary))))))

(defun duologue-stop ()
  "Stop the answer.
The texts of those that wait are put back into the buffer of the prompt."
  (interactive)
  (let ((chat (duologue--current)))
    (if (zerop (duologue--runs chat))
        (message "Nothing is being answered")
      ;; First those that wait: none of them may begin in between.
      (duologue--request chat '(:cancel (:waiting t)))
      (duologue--request chat '(:cancel nil)))))

(defun duologue-retry ()
  "Drop the last turn and ask its prompt again."
  (interactive)
  (duologue--request (duologue--current) '(:edit (:regenerate nil)) :kind 'run))

(defun duologue-edit ()
  "Put the last prompt into the prompt, to be asked in place of the old one.
The second time, leave everything as it is.  What was being written comes back
either way."
  (interactive)
  (let* ((chat (duologue--current))
         ;; Prompts that joined a run can't be edited.
         (last (seq-find (lambda (entity) (and (eq (duologue--entity-kind entity) 'user)
                                               (string-suffix-p "-user" (duologue--entity-id entity))))
                         (duologue--chat-order chat)))
         (edited (duologue--chat-editing chat)))
    (unless (or last edited)
      (user-error "There is no prompt to edit"))
    (unless (zerop (duologue--runs chat))
      (user-error "An answer is being written; M-x duologue-stop stops it"))
    (duologue--show chat)
    (if edited
        (duologue--stop-editing chat)
      (duologue--start-editing chat (duologue--entity-id last)))
    (erase-buffer)
    (insert (if edited (duologue--chat-draft chat) (duologue--text last)))))

(defun duologue-fork ()
  "Copy the conversation and open the copy.  The other one stays as it is."
  (interactive)
  (let* ((default-directory (duologue--chat-folder (duologue--current)))
         (store (or (duologue--store) (user-error "A conversation that is not stored can't be copied"))))
    (duologue--show
     (duologue--open (car (duologue--json "sessions" "fork" (duologue--chat-session (duologue--current))
                                          "--store" store))))))

(defun duologue--folder ()
  "Return the folder of the conversation; without one, that of this buffer."
  (let ((chat (or duologue--chat (car duologue--chats))))
    (if chat (duologue--chat-folder chat) default-directory)))

(defun duologue--json (&rest words)
  "Run duologue with WORDS; return the data of its document."
  (let ((default-directory (duologue--folder))
        (coding-system-for-read 'utf-8-unix) ; whatever the locale is
        (command (append duologue-command words '("--output" "json"))))
    (with-temp-buffer
      (let ((status (condition-case why
                        (apply #'call-process (car command) nil '(t nil) nil (cdr command))
                      (error (user-error "%s can't be started: %s" (car command) (error-message-string why))))))
        (goto-char (point-min))
        (let ((document (condition-case nil
                            (json-parse-buffer :object-type 'alist :array-type 'list :null-object nil :false-object nil)
                          (error nil))))
          (let-alist document
            (when (or (not document) (and .error (not .data)))
              (user-error "Duologue: %s" (or (and .error (duologue--error-text .error)) (format "it ended with status %s" status))))
            .data))))))

(defun duologue--sessions ()
  "Return the stored conversations, as lines and their ids."
  (duologue--distinct
   (mapcar (lambda (session)
             (let-alist session
               (cons (format "%s  %s  (%d turn%s, %s)" (format-time-string "%F %R" (date-to-time .lastActivity))
                             (duologue--short (or .title .id) 60) .turns (if (= .turns 1) "" "s")
                             (abbreviate-file-name (or .folder "")))
                     .id)))
           (duologue--json "sessions" "list" "--store" (or (duologue--store) (user-error "Nothing is stored"))))))

(defun duologue--distinct (choices)
  "Return CHOICES, lines and ids; a line that occurs twice has the id, too."
  (let ((counts (make-hash-table :test 'equal)))
    (dolist (choice choices)
      (cl-incf (gethash (car choice) counts 0)))
    (mapcar (lambda (choice)
              (if (= 1 (gethash (car choice) counts))
                  choice
                (cons (format "%s  %s" (car choice) (cdr choice)) (cdr choice))))
            choices)))

;;;###autoload
(defun duologue-resume (session)
  "Open the stored conversation SESSION."
  (interactive
   (let* ((sessions (duologue--sessions))
          (table (lambda (text predicate action)
                   (if (eq action 'metadata)
                       '(metadata (display-sort-function . identity)) ; newest first
                     (complete-with-action action sessions text predicate)))))
     (list (or (cdr (assoc (completing-read "Conversation: " table nil t) sessions))
               (user-error "No conversation was chosen")))))
  (duologue--show (duologue--open session)))

(defun duologue--names (command member)
  "Return the MEMBER of each thing that COMMAND lists, or nil if it can't.
A name can be written without the list."
  (condition-case why
      (mapcar (lambda (item) (alist-get member item)) (apply #'duologue--json command (duologue--shared command)))
    (user-error (message "%s" (error-message-string why)) nil)))

(defun duologue--shared (command)
  "Return those of `duologue-options' that COMMAND takes, too."
  (let ((taken (if (equal command "profiles")
                   '("--profile-registries")
                 '("--engine" "--base-url" "--profile" "--profile-registries" "--key-file" "--key-command")))
        (words duologue-options) shared)
    (while words
      (let* ((word (pop words)) (parts (split-string word "=")))
        (when (member (car parts) taken)
          (push word shared)
          (unless (cdr parts)
            (push (pop words) shared)))))
    (nreverse shared)))

(defun duologue-switch-model (model)
  "Have MODEL answer from the next prompt on."
  (interactive (list (completing-read "Model: " (duologue--names "models" 'id))))
  (duologue--request (duologue--current) (list :switchModel (list :model model))))

(defun duologue-switch-profile (profile)
  "Have PROFILE answer from the next prompt on."
  (interactive (list (completing-read "Profile: " (duologue--names "profiles" 'name))))
  (duologue--request (duologue--current) (list :switchModel (list :profile profile))))

(defun duologue-toggle ()
  "Show or hide what is folded at point."
  (interactive)
  (let ((entity (or (get-text-property (point) 'duologue-entity) (user-error "Nothing is folded here")))
        (inhibit-read-only t))
    (setf (duologue--entity-open entity) (not (duologue--entity-open entity)))
    (save-excursion
      (goto-char (duologue--entity-start entity))
      (while (< (point) (duologue--entity-end entity))
        (let ((next (next-single-property-change (point) 'duologue-fold nil (duologue--entity-end entity))))
          (when (get-text-property (point) 'duologue-fold)
            (put-text-property (point) next 'invisible (unless (duologue--entity-open entity) 'duologue)))
          (goto-char next))))))

;;;;; Decisions about tool calls

(defvar duologue--idle-timer nil
  "The timer that asks about a tool call.")

(defvar duologue--put-off nil
  "Calls that were put off; Emacs does not ask about them by itself again.")

(defvar duologue--event-count 0
  "What `num-nonmacro-input-events' was when the timer ran last.")

(defun duologue--ask-when-idle ()
  "Ask about a tool call when no key was pressed for a while."
  ;; Not an idle timer: that one runs once until the next key, which may come long after the next call does.
  (when (and duologue-question-idle-seconds (not duologue--idle-timer))
    (let ((seconds (max 0.1 duologue-question-idle-seconds)))
      (setq duologue--event-count num-nonmacro-input-events
            duologue--idle-timer (run-at-time seconds seconds #'duologue--tick)))))

(defun duologue--tick ()
  "Ask about a tool call if no key was pressed since the last time."
  (if (= duologue--event-count num-nonmacro-input-events)
      (duologue--idle)
    (setq duologue--event-count num-nonmacro-input-events)))

(defun duologue--may-ask ()
  "Return whether a question would take no key that is meant for something else."
  (not (or (active-minibuffer-window) (bound-and-true-p isearch-mode) executing-kbd-macro defining-kbd-macro
           (input-pending-p) (> (recursion-depth) 0))))

(defun duologue--idle ()
  "Ask about the call that waits in the selected window's conversation."
  (if (not (seq-some #'duologue--chat-questions duologue--chats))
      (when duologue--idle-timer
        (cancel-timer duologue--idle-timer)
        (setq duologue--idle-timer nil duologue--put-off nil))
    (let* ((chat (buffer-local-value 'duologue--chat (window-buffer)))
           (question (and chat
                          (seq-find (lambda (payload)
                                      (not (member (alist-get 'toolCallId payload) duologue--put-off)))
                                    (duologue--chat-questions chat)))))
      (when (and question (duologue--may-ask))
        (duologue--decide chat question)))))

(defun duologue-approve ()
  "Decide about the tool call that has waited longest."
  (interactive)
  (let ((chat (duologue--current)))
    (duologue--decide chat (or (car (duologue--chat-questions chat)) (user-error "No call waits for a decision")))))

(defun duologue--heading (question)
  "Return what is asked about QUESTION."
  (let-alist question
    (format "%s of %s wants to run with\n  %s\n" (duologue--short .toolName 64) (duologue--short (or .server "") 64)
            (duologue--short (or .input "") 1000))))

(defun duologue--decide (chat question)
  "Ask about QUESTION of CHAT, and send the decision.
The answers are words, so that a key that was meant for something else is none."
  (let* ((read-answer-short nil)
         (call (alist-get 'toolCallId question))
         (answer (condition-case nil
                     (read-answer (duologue--heading question)
                                  '(("later" ?l "decide later") ("allow" ?a "run this call")
                                    ("session" ?s "allow this tool in this conversation") ("deny" ?d "do not run it")
                                    ("reason" ?r "do not run it, with a reason that the model reads")))
                   (quit "later")))
         (reason (when (equal answer "reason") (read-string "Reason: "))))
    (cond ((equal answer "later")
           (push call duologue--put-off))
          ((not (member question (duologue--chat-questions chat)))
           (message "The call waits no longer"))
          (t
           ;; At once: the question must not be asked again until the answer is back.
           (duologue--drop-question chat call)
           (duologue--request chat (list :approve (append (list :toolCallId call
                                                                :decision (pcase answer
                                                                            ("allow" "ALLOW_ONCE")
                                                                            ("session" "ALLOW_SESSION")
                                                                            (_ "DENY")))
                                                          (and reason (list :reason (duologue--clean reason))))))))))

(provide 'duologue)
;;; duologue.el ends here
