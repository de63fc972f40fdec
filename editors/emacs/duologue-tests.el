;;; duologue-tests.el --- Tests of duologue.el with the real program  -*- lexical-binding: t; -*-

;;; Commentary:

;; DUOLOGUE_BIN names the program.  HOME should be a folder of its own.

;;; Code:

(require 'ert)
(require 'duologue)

(defconst duologue-tests--folder (file-name-directory (or load-file-name buffer-file-name)))

(defun duologue-tests--example (name)
  "Return the path of the example NAME."
  (expand-file-name (concat "../../examples/" name) duologue-tests--folder))

(defun duologue-tests--wait (what condition)
  "Wait until CONDITION, a function, is true; WHAT it is, for people."
  (let ((deadline (+ (float-time) 30)) value)
    (while (not (setq value (funcall condition)))
      (when (> (float-time) deadline)
        (ert-fail (format "%s: not within 30 s: %s" what
                          (and duologue--chats (duologue-tests--text)))))
      (accept-process-output nil 0.01))
    value))

(defun duologue-tests--chat ()
  "Return the conversation."
  (car duologue--chats))

(defun duologue-tests--text ()
  "Return what the conversation shows, folded text included."
  (with-current-buffer (duologue--chat-buffer (duologue-tests--chat))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun duologue-tests--shown ()
  "Return what of the conversation is not folded."
  (with-current-buffer (duologue--chat-buffer (duologue-tests--chat))
    (apply #'concat (seq-remove (lambda (part) (get-text-property 0 'invisible part))
                                (duologue--split-at (buffer-string) 'invisible)))))

(defun duologue-tests--wait-text (part)
  "Wait until the conversation has PART."
  (duologue-tests--wait (format "text %S" part)
                        (lambda () (and duologue--chats (string-search part (duologue-tests--text))
                                        (duologue-tests--text)))))

(defun duologue-tests--wait-idle ()
  "Wait until nothing is answered or drawn."
  (duologue-tests--wait "the end of the answer"
                        (lambda () (let ((chat (duologue-tests--chat)))
                                     (and (duologue--chat-greeted chat) (zerop (duologue--runs chat))
                                          (hash-table-empty-p (duologue--chat-dirty chat)))))))

(defun duologue-tests--prompt ()
  "Return the prompt that is being written."
  (with-current-buffer (duologue--chat-prompt (duologue-tests--chat))
    (buffer-string)))

(defun duologue-tests--pid ()
  "Return the process id of the conversation."
  (process-id (duologue--chat-process (duologue-tests--chat))))

(defun duologue-tests--type (text)
  "Write TEXT as the prompt and send it with its key."
  (duologue)
  (with-current-buffer (duologue--chat-prompt (duologue-tests--chat))
    (insert text)
    (call-interactively (key-binding (kbd "C-c C-c")))))

(defmacro duologue-tests--with (options &rest body)
  "Run BODY with a home of its own and conversations with OPTIONS."
  (declare (indent 1))
  `(let* ((home (make-temp-file "duologue-home" t))
          (process-environment
           ;; Variables that scripts set are not heeded.
           (append (list (concat "HOME=" home) "DUOLOGUE_STORE" "XDG_DATA_HOME" "DUOLOGUE_EVENTS=ChatRun*")
                   process-environment))
          (duologue-command (list (getenv "DUOLOGUE_BIN")))
          (duologue-store (expand-file-name "sessions.db" home))
          (duologue-options ,options)
          (duologue-question-idle-seconds nil))
     (unwind-protect
         (progn ,@body)
       (duologue-tests--end)
       (delete-directory home t))))

(defun duologue-tests--end ()
  "End all conversations."
  (let ((chats duologue--chats))
    (duologue--end-all)
    (dolist (chat chats)
      (mapc #'kill-buffer
            (seq-filter #'buffer-live-p (list (duologue--chat-buffer chat) (duologue--chat-prompt chat)))))))

(defmacro duologue-tests--with-fake (scenario &rest body)
  "Run BODY with a server that has the faults of SCENARIO."
  (declare (indent 1))
  `(duologue-tests--with nil
     (let ((duologue-command
            (list "python3" (expand-file-name "../tests/fake_server.py" duologue-tests--folder) ,scenario)))
       ,@body)))

(defmacro duologue-tests--answering (answers &rest body)
  "Run BODY; each question gets the next of ANSWERS, and `asked' is what was asked."
  (declare (indent 1))
  `(let ((answers ,answers) asked)
     (cl-letf (((symbol-function 'read-from-minibuffer)
                (lambda (prompt &rest _) (push prompt asked) (pop answers)))
               ((symbol-function 'read-string)
                (lambda (prompt &rest _) (push prompt asked) (pop answers))))
       ,@body)))

(defconst duologue-tests--echo '("--engine" "echo"))
(defconst duologue-tests--slow '("--engine" "echo" "--echo-delay-ms" "60000"))
(defconst duologue-tests--tools
  (list "--engine" "echo" "--echo-script" (duologue-tests--example "tool_calls.jsonl")
        "--mcp" (format "python3 %s" (duologue-tests--example "clock.py"))))

(ert-deftest duologue-a-prompt-that-is-typed-is-answered ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "What is a duologue?")
    (duologue-tests--wait-text "Model\n\nTurn 1. You said: What is a duologue?\n")
    (duologue-tests--wait-idle)
    ;; A pipe, not a terminal.
    (should-not (process-tty-name (duologue--chat-process (duologue-tests--chat))))
    (with-current-buffer (duologue--chat-buffer (duologue-tests--chat))
      (should (string-search "echo" (duologue--header))))
    (should (equal (duologue-tests--prompt) ""))
    (duologue-tests--type "And then?")
    (duologue-tests--wait-text "Turn 2. You said: And then?\nBefore that you said: What is a duologue?")))

(ert-deftest duologue-undo-is-that-of-the-prompt-alone ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "one")
    (duologue-tests--wait-text "You said: one")
    (with-current-buffer (duologue--chat-prompt (duologue-tests--chat))
      (primitive-undo 1 (cdr buffer-undo-list)))
    (should (equal (duologue-tests--prompt) "one"))
    (should (eq (buffer-local-value 'buffer-undo-list (duologue--chat-buffer (duologue-tests--chat))) t))))

(ert-deftest duologue-a-region-goes-along-in-a-fence ()
  (duologue-tests--with duologue-tests--echo
    (with-temp-buffer
      (emacs-lisp-mode)
      (insert "one\n```\ntwo\n")
      (transient-mark-mode 1)
      (set-mark (point-min))
      (activate-mark)
      (duologue-ask "Explain"))
    (let ((text (duologue-tests--wait-text "You said: Explain")))
      (should (string-search "lines 1 to 3:\n\n````emacs-lisp\none\n```\ntwo\n````" text)))))

(ert-deftest duologue-a-region-has-the-lines-of-the-whole-buffer-and-a-rectangle-its-own-text ()
  (with-temp-buffer
    (transient-mark-mode 1)
    (insert "abcd\nefgh\nijkl\nmnop\n")
    (cl-flet ((region (from to)
                (set-mark from)
                (goto-char to)
                (activate-mark)
                (replace-regexp-in-string "\\`.*, " "" (duologue--region))))
      (should (equal (region 1 11) "lines 1 to 2:\n\n```fundamental\nabcd\nefgh\n```"))
      (should (equal (region 1 12) "lines 1 to 3:\n\n```fundamental\nabcd\nefgh\ni\n```"))
      (narrow-to-region 11 21)
      (should (equal (region 11 21) "lines 3 to 4:\n\n```fundamental\nijkl\nmnop\n```"))
      (widen)
      (rectangle-mark-mode 1)
      (should (equal (region 2 14) "lines 1 to 3:\n\n```fundamental\nbc\nfg\njk\n```"))
      ;; Its last line counts, also from the beginning.
      (should (equal (region 2 11) "lines 1 to 3:\n\n```fundamental\na\ne\ni\n```")))))

(ert-deftest duologue-stop-ends-the-answer-and-gives-back-what-waits ()
  (duologue-tests--with duologue-tests--slow
    (duologue-tests--type "first")
    (duologue-tests--wait-text "You\n\nfirst")
    (duologue-tests--type "second")
    (should (equal (duologue--state (duologue-tests--chat)) "answering, 1 wait"))
    (duologue-stop)
    (duologue-tests--wait "the second is back" (lambda () (equal (duologue-tests--prompt) "second")))
    (duologue-tests--wait-idle)
    (should-not (string-search "second" (duologue-tests--text)))))

(ert-deftest duologue-retry-asks-the-last-prompt-again ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "first")
    (duologue-tests--wait-text "You said: first")
    (duologue-tests--wait-idle)
    (let ((first (duologue--entity-id (car (last (duologue--chat-order (duologue-tests--chat)))))))
      (duologue-retry)
      (duologue-tests--wait-idle)
      (should (= 1 (length (duologue--matches "You said: first" (duologue-tests--text)))))
      (should-not (equal first (duologue--entity-id (car (last (duologue--chat-order (duologue-tests--chat))))))))))

(ert-deftest duologue-a-stored-conversation-is-resumed ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "my name is Ada")
    (duologue-tests--wait-text "You said: my name is Ada")
    (duologue-tests--wait-idle)
    (duologue-tests--end)
    (let ((sessions (duologue--sessions)))
      (should (string-search "my name is Ada" (caar sessions)))
      (should (string-match "\\`[-0-9]+ [0-9]+:[0-9]+" (caar sessions)))
      ;; The time of the last activity is that of this place.
      (let ((time (date-to-time (concat (match-string 0 (caar sessions)) ":00"))))
        (should (< (abs (float-time (time-subtract (current-time) time))) 120)))
      (should-error (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "")))
                      (call-interactively #'duologue-resume))
                    :type 'user-error)
      (duologue-resume (cdar sessions)))
    (duologue-tests--wait-text "You said: my name is Ada")
    (duologue-tests--type "who am I?")
    (duologue-tests--wait-text "Turn 2. You said: who am I?\nBefore that you said: my name is Ada")))

(ert-deftest duologue-lists-are-read-as-utf-8-whatever-the-locale-is ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "größer")
    (duologue-tests--wait-text "You said: größer")
    (duologue-tests--wait-idle)
    (let ((default-process-coding-system '(latin-1-unix . latin-1-unix)))
      (should (string-search "größer" (caar (duologue--sessions)))))))

(ert-deftest duologue-conversations-whose-lines-are-equal-have-their-ids ()
  (should (equal (duologue--distinct '(("hi" . "a") ("ho" . "b") ("hi" . "c")))
                 '(("hi  a" . "a") ("ho" . "b") ("hi  c" . "c")))))

(ert-deftest duologue-a-model-is-chosen ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "You said: hi")
    (duologue-tests--wait-idle)
    (duologue-switch-model "another")
    (duologue-tests--wait "the model" (lambda () (equal "another" (duologue--chat-model (duologue-tests--chat)))))))

(ert-deftest duologue-names-are-listed-with-the-options-of-the-conversation ()
  (let ((duologue-options '("--engine" "echo" "--mcp" "x" "--profile-registries=a,b" "--approval" "ask")))
    (should (equal (duologue--shared "models") '("--engine" "echo" "--profile-registries=a,b")))
    (should (equal (duologue--shared "profiles") '("--profile-registries=a,b"))))
  (duologue-tests--with duologue-tests--echo
    (should (equal (duologue--names "models" 'id) '("echo"))))
  (duologue-tests--with '("--engine" "nonsense")
    (should-not (duologue--names "models" 'id))))

(ert-deftest duologue-a-profile-is-chosen ()
  (let ((profiles (make-temp-file "duologue-profiles" nil ".yaml"
                                  "profiles:\n  demo: {engine: ollama, model: demo-model}\n")))
    (duologue-tests--with (append duologue-tests--echo (list "--profile-registries" profiles))
      (duologue-tests--type "hi")
      (duologue-tests--wait-text "You said: hi")
      (duologue-tests--wait-idle)
      (duologue-switch-profile "demo")
      (duologue-tests--wait "the model" (lambda () (equal "demo-model" (duologue--chat-model (duologue-tests--chat))))))
    (delete-file profiles)))

(ert-deftest duologue-the-text-of-an-error-has-its-reason ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "You said: hi")
    (duologue-tests--wait-idle)
    (duologue-switch-profile "nope")
    (duologue-tests--wait-text "send the request again (there is no profile \"nope\""))
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8))
      (insert-file-contents (expand-file-name "../../clients/error_texts.json" duologue-tests--folder)))
    (dolist (case (json-parse-buffer :object-type 'alist :array-type 'list))
      (should (equal (duologue--error-text case) (alist-get 'text case))))))

(ert-deftest duologue-the-last-prompt-is-edited ()
  (duologue-tests--with duologue-tests--echo
    (dolist (prompt '("first" "second"))
      (duologue-tests--type prompt)
      (duologue-tests--wait-text (concat "You said: " prompt))
      (duologue-tests--wait-idle))
    (with-current-buffer (duologue--chat-prompt (duologue-tests--chat))
      (insert "a draft"))
    (duologue-edit)
    (should (equal (duologue-tests--prompt) "second"))
    (duologue-edit)
    (should (equal (duologue-tests--prompt) "a draft"))
    (duologue-edit)
    (duologue-tests--type " changed")
    (should (equal (duologue-tests--prompt) "a draft"))
    (duologue-tests--wait-text "Turn 2. You said: second changed")
    (duologue-tests--wait-idle)
    (should (= 2 (length (duologue--matches "^You$" (duologue-tests--text)))))))

(ert-deftest duologue-a-question-from-elsewhere-leaves-the-prompt-that-is-edited ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "first")
    (duologue-tests--wait-text "You said: first")
    (duologue-tests--wait-idle)
    (duologue-edit)
    (with-temp-buffer
      (duologue-ask "what is this?"))
    (duologue-tests--wait-text "Turn 2. You said: what is this?")
    (duologue-tests--wait-idle)
    (should (string-search "Turn 1. You said: first" (duologue-tests--text)))
    (should (equal (duologue-tests--prompt) "first"))
    (should (duologue--chat-editing (duologue-tests--chat)))
    (duologue-tests--type " changed")
    (duologue-tests--wait-text "Turn 1. You said: first changed")
    (should-not (duologue--chat-editing (duologue-tests--chat)))))

(ert-deftest duologue-a-copy-goes-on-without-the-original ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "one")
    (duologue-tests--wait-text "You said: one")
    (duologue-tests--wait-idle)
    (let ((original (duologue-tests--chat)))
      (with-current-buffer (duologue--chat-prompt original)
        (duologue-fork))
      (should-not (eq original (duologue-tests--chat)))
      (duologue-tests--wait-text "You said: one")
      (duologue-tests--type "two")
      (duologue-tests--wait-text "Turn 2. You said: two"))))

(ert-deftest duologue-a-call-is-decided-with-its-arguments-in-sight ()
  (duologue-tests--with duologue-tests--tools
    (duologue-tests--type "time?")
    (duologue-tests--wait "two questions" (lambda () (= 2 (length (duologue--chat-questions (duologue-tests--chat))))))
    (duologue-tests--wait-text "waits for a decision")
    (should (string-search "{\"city\":\"Berlin\"}" (duologue-tests--shown)))
    (should (equal (duologue--state (duologue-tests--chat)) "2 calls wait: M-x duologue-approve"))
    ;; A letter, or Enter alone, decides nothing.
    (duologue-tests--answering '("y" "a" "" "allow")
      (duologue-approve)
      (should (= 4 (length asked)))
      (should (string-search "get_time of clock wants to run with\n  {\"city\":\"Berlin\"}" (car asked))))
    (duologue-tests--answering '("later") (duologue-approve))
    (should (= 1 (length (duologue--chat-questions (duologue-tests--chat)))))
    (duologue-tests--answering '("reason" "not there") (duologue-approve))
    (let ((text (duologue-tests--wait-text "It is noon in Berlin.")))
      (should (string-search "→ 12:00" text))
      (should (string-search "not there" text)))
    (duologue-tests--wait-idle)
    (should-not (string-search "12:00" (duologue-tests--shown)))
    (should-not (string-search "I need the time" (duologue-tests--shown)))
    (should (string-search "get_time {\"city\":\"Berlin\"} · completed" (duologue-tests--shown)))
    (with-current-buffer (duologue--chat-buffer (duologue-tests--chat))
      (goto-char (point-min))
      (search-forward "Berlin")
      (call-interactively (key-binding (kbd "TAB"))))
    (should (string-search "12:00" (duologue-tests--shown)))))

(ert-deftest duologue-a-question-takes-no-key-that-is-typed ()
  (duologue-tests--with duologue-tests--tools
    (duologue-tests--type "time?")
    (duologue-tests--wait "two questions" (lambda () (= 2 (length (duologue--chat-questions (duologue-tests--chat))))))
    (let ((duologue--put-off nil) (duologue--idle-timer nil))
      (duologue-tests--answering '("later" "later" "allow")
        ;; Another window is selected.
        (switch-to-buffer "*scratch*")
        (duologue--idle)
        (should-not asked)
        (switch-to-buffer (duologue--chat-prompt (duologue-tests--chat)))
        (let ((executing-kbd-macro [?x]))
          (duologue--idle)
          (should-not asked))
        (duologue--idle)
        (should (= 1 (length asked)))
        (duologue--idle)
        (should (= 2 (length asked)))
        ;; Those that were put off are not asked about again.
        (duologue--idle)
        (should (= 2 (length asked)))))
    (should (= 2 (length (duologue--chat-questions (duologue-tests--chat)))))))

(ert-deftest duologue-each-call-that-waits-is-asked-about-without-another-key ()
  (duologue-tests--with duologue-tests--tools
    (let ((duologue-question-idle-seconds 0.1) (duologue--put-off nil) (duologue--idle-timer nil))
      (duologue-tests--answering '("allow" "deny")
        (duologue-tests--type "time?")
        (duologue-tests--wait-text "It is noon in Berlin.")
        (should (= 2 (length asked)))))))

(ert-deftest duologue-a-key-puts-a-question-off ()
  (duologue-tests--with duologue-tests--tools
    (duologue-tests--type "time?")
    (duologue-tests--wait "two questions" (lambda () (= 2 (length (duologue--chat-questions (duologue-tests--chat))))))
    (let ((duologue--put-off nil) (duologue--event-count num-nonmacro-input-events))
      (duologue-tests--answering '("later")
        (let ((num-nonmacro-input-events (1+ num-nonmacro-input-events)))
          (duologue--tick)
          (should-not asked)
          (duologue--tick)
          (should (= 1 (length asked))))))))

(ert-deftest duologue-who-reads-is-not-moved-and-who-is-at-the-end-follows ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type (mapconcat #'number-to-string (number-sequence 1 300) "\n"))
    (duologue-tests--wait-text "You said: 1\n")
    (duologue-tests--wait-idle)
    (let* ((buffer (duologue--chat-buffer (duologue-tests--chat)))
           (window (get-buffer-window buffer)))
      (should (= (window-point window) (with-current-buffer buffer (point-max))))
      (set-window-start window 40)
      (set-window-point window 50)
      (duologue--ask (duologue-tests--chat) "again")
      (duologue-tests--wait-text "You said: again")
      (duologue-tests--wait-idle)
      (should (= (window-point window) 50))
      (should (= (window-start window) 40)))))

(ert-deftest duologue-who-reads-the-answer-that-comes-is-not-moved ()
  (duologue-tests--with '("--engine" "echo" "--echo-delay-ms" "2")
    (duologue-tests--type (mapconcat #'number-to-string (number-sequence 1 200) "\n"))
    (duologue-tests--wait-text "Turn 1. You said: 1\n2\n3\n4\n5\n")
    (let* ((buffer (duologue--chat-buffer (duologue-tests--chat)))
           (window (get-buffer-window buffer))
           (at (with-current-buffer buffer
                 (goto-char (point-min))
                 (search-forward "You said: 1\n2\n3"))))
      (should (> (duologue--runs (duologue-tests--chat)) 0))
      (set-window-point window at)
      (duologue-tests--wait-idle)
      (should (string-suffix-p "200\n\n" (duologue-tests--text)))
      (should (= (window-point window) at)))))

(ert-deftest duologue-only-what-differs-is-replaced ()
  (dolist (pair '(("abc" "abc") ("abc" "abXc") ("aXbc" "abc") ("" "new") ("old" "")
                  ("aaa" "aa") ("aa" "aaaa") ("ab" "ba")))
    (with-temp-buffer
      (insert "<" (car pair) ">")
      (duologue--replace 2 (car pair) (propertize (cadr pair) 'duologue-fold t))
      (should (equal (buffer-string) (concat "<" (cadr pair) ">")))
      (should (equal (text-property-not-all 2 (1- (point-max)) 'duologue-fold t) nil)))))

(ert-deftest duologue-a-prompt-that-is-too-long-stays ()
  (duologue-tests--with (append duologue-tests--echo '("--max-request-bytes" "1000"))
    (duologue)
    (duologue-tests--wait "a greeting" (lambda () (duologue--chat-greeted (duologue-tests--chat))))
    (should-error (duologue-tests--type (make-string 2000 ?x)) :type 'user-error)
    (should (= 2000 (length (duologue-tests--prompt))))))

(ert-deftest duologue-a-process-that-is-killed-is-started-again ()
  (duologue-tests--with '("--engine" "echo" "--echo-delay-ms" "20")
    (duologue-tests--type "one")
    (duologue-tests--wait-text "Turn 1. You said: one")
    (duologue-tests--wait-idle)
    (duologue-tests--type (mapconcat #'identity (make-list 300 "word") " "))
    (duologue-tests--wait-text "Turn 2. You said: word word")
    (signal-process (duologue-tests--pid) 'SIGKILL)
    (let ((text (duologue-tests--wait-text "(stopped")))
      (should (string-search "was ended by signal 9 and was started again" text))
      (should (= 1 (length (duologue--matches "Turn 1\\." text))))
      (should (= 1 (length (duologue--matches "Turn 2\\." text)))))
    (duologue-tests--wait-idle)
    (duologue-tests--type "three")
    (duologue-tests--wait-text "Turn 3. You said: three")))

(ert-deftest duologue-a-process-that-is-started-again-runs-in-the-same-folder ()
  (duologue-tests--with duologue-tests--echo
    (let* ((folder (file-name-as-directory (expand-file-name "project" home)))
           (cwd (lambda () (file-symlink-p (format "/proc/%d/cwd" (duologue-tests--pid))))))
      (skip-unless (file-directory-p "/proc/self/cwd"))
      (make-directory folder)
      (let ((default-directory folder))
        (duologue-new))
      (duologue-tests--wait-idle)
      (should (equal (funcall cwd) (directory-file-name (file-truename folder))))
      (with-temp-buffer
        (setq default-directory home)
        (let ((pid (duologue-tests--pid)))
          (signal-process pid 'SIGKILL)
          (duologue-tests--wait "another process"
                                (lambda () (let ((process (duologue--chat-process (duologue-tests--chat))))
                                             (and process (/= pid (process-id process)))))))
        (duologue-tests--wait-idle)
        (should (equal (funcall cwd) (directory-file-name (file-truename folder))))
        (should (equal (duologue--folder) folder))))))

(ert-deftest duologue-a-prompt-whose-buffer-was-killed-is-made-again ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "one")
    (duologue-tests--wait-text "You said: one")
    (duologue-tests--wait-idle)
    (duologue-edit)
    (kill-buffer (duologue--chat-prompt (duologue-tests--chat)))
    (duologue-tests--type "two")
    (duologue-tests--wait-text "Turn 2. You said: two")
    (duologue-tests--wait-idle)
    (kill-buffer (duologue--chat-prompt (duologue-tests--chat)))
    (duologue-ask "three")
    (duologue-tests--wait-text "Turn 3. You said: three")
    (should (eq major-mode 'duologue-prompt-mode))))

(ert-deftest duologue-an-edit-that-is-refused-is-still-an-edit ()
  (duologue-tests--with '("--engine" "echo" "--echo-delay-ms" "20")
    (duologue-tests--type "one")
    (duologue-tests--wait-text "You said: one")
    (duologue-tests--wait-idle)
    (duologue-edit)
    ;; An edit during a run is refused.
    (duologue--request (duologue-tests--chat)
                       (list :submit (list :prompt (mapconcat #'identity (make-list 300 "word") " "))) :kind 'run)
    (duologue-tests--type " changed")
    (should-not (duologue--chat-editing (duologue-tests--chat)))
    (duologue-tests--wait "the prompt comes back" (lambda () (equal (duologue-tests--prompt) "one changed")))
    (should (duologue--chat-editing (duologue-tests--chat)))
    (with-current-buffer (duologue--chat-prompt (duologue-tests--chat))
      (should (equal header-line-format duologue--edit-header)))
    (duologue-stop)
    (duologue-tests--wait-idle)
    (duologue-send)
    (duologue-tests--wait-text "Turn 1. You said: one changed")))

(ert-deftest duologue-an-edit-that-can-not-be-sent-is-still-an-edit ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "one")
    (duologue-tests--wait-text "You said: one")
    (duologue-tests--wait-idle)
    (duologue-edit)
    (let ((duologue-command '("/nowhere/duologue")))
      (signal-process (duologue-tests--pid) 'SIGKILL)
      (duologue-tests--wait-text "/nowhere/duologue can't be started")
      (duologue-tests--type " changed"))
    (should (equal (duologue-tests--prompt) "one changed"))
    (should (duologue--chat-editing (duologue-tests--chat)))))

(ert-deftest duologue-the-end-of-emacs-ends-the-process-and-its-run ()
  (duologue-tests--with duologue-tests--slow
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "You\n\nhi")
    (let ((process (duologue--chat-process (duologue-tests--chat))))
      (duologue--end-all)
      (should-not (process-live-p process)))))

(ert-deftest duologue-killing-the-buffer-ends-the-process ()
  (duologue-tests--with duologue-tests--slow
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "You\n\nhi")
    (let* ((chat (duologue-tests--chat)) (process (duologue--chat-process chat)))
      (kill-buffer (duologue--chat-buffer chat))
      (duologue-tests--wait "the end" (lambda () (not (process-live-p process))))
      (should-not (buffer-live-p (duologue--chat-prompt chat)))
      (should-not duologue--chats))))

(ert-deftest duologue-the-end-of-emacs-ends-the-process-of-a-buffer-that-was-just-killed ()
  (duologue-tests--with-fake "stubborn"
    (duologue)
    (duologue-tests--wait-text "ready")
    (let* ((chat (duologue-tests--chat)) (process (duologue--chat-process chat)))
      (kill-buffer (duologue--chat-buffer chat))
      (should (process-live-p process))
      (duologue--end-all)
      (duologue-tests--wait "the end" (lambda () (not (process-live-p process)))))))

(ert-deftest duologue-a-process-that-ends-for-nothing-is-killed ()
  (duologue-tests--with-fake "stubborn"
    (duologue)
    (duologue-tests--wait-text "ready")
    (let ((process (duologue--chat-process (duologue-tests--chat))))
      (duologue--end-all)
      (duologue-tests--wait "the end" (lambda () (not (process-live-p process)))))))

(ert-deftest duologue-chunks-are-not-lines ()
  (duologue-tests--with-fake "halves"
    (duologue-tests--type "hi")
    (let ((text (duologue-tests--wait-text "tab\there\nnew")))
      (should (string-search "ä€😀 e\u0301 שלום \u2028 \u0085 " text)))))

(defun duologue-tests--view (&rest steps)
  "Return the texts of a view after STEPS: events, or snapshots after t."
  (let ((chat (duologue--make-chat)))
    (dolist (step steps)
      (if (eq (car step) t)
          (duologue--snapshot chat (cdr step) t)
        (duologue--event chat "" step)))
    (append (mapcar #'duologue--text (reverse (duologue--chat-order chat))) (list (duologue--chat-ordinal-text chat)))))

(defun duologue-tests--patch (ordinal offset text)
  "Return the event ORDINAL that puts TEXT at OFFSET."
  `((ordinal . ,ordinal) (payload . ((@type . "x/pinocchio.chatapp.v1.ChatTextPatch") (messageId . "m")
                                     (offset . ,offset) (text . ,text)))))

(defun duologue-tests--message (ordinal text)
  "Return an entity that ORDINAL has changed, with TEXT."
  `((kind . "ChatMessage") (id . "m") (lastEventOrdinal . ,ordinal)
    (payload . ((messageId . "m") (role . "assistant") (text . ,text)))))

(ert-deftest duologue-offsets-count-bytes-and-a-patch-may-come-twice ()
  (should (equal (duologue-tests--view (duologue-tests--patch "2" "0" "grö") (duologue-tests--patch "3" "4" "ße")
                                       (duologue-tests--patch "3" "4" "ße") (duologue-tests--patch "4" "7" "😀!"))
                 '("größe😀!" "4")))
  (should (equal (duologue-tests--view (duologue-tests--patch "2" "0" "abc") (duologue-tests--patch "3" "1" "x"))
                 '("ax" "3"))))

(ert-deftest duologue-a-snapshot-changes-what-is-newer-unless-events-were-lost ()
  (let ((first `(t (snapshotOrdinal . "10") (entities . (,(duologue-tests--message "3" "one")))))
        (again `(t (snapshotOrdinal . "11") (entities . (,(duologue-tests--message "3" "another")))))
        (degraded '((ordinal . "10") (payload . ((@type . "x/duologue.session.v1.StoreDegraded"))))))
    (should (equal (duologue-tests--view first again) '("one" "11")))
    (should (equal (duologue-tests--view first degraded again) '("another" "11")))
    (should (equal (duologue-tests--view first (duologue-tests--patch "5" "0" "old")) '("one" "10")))))

(ert-deftest duologue-a-nul-is-another-character-of-one-byte ()
  (should (equal (duologue--without-nul "a\\u0000\\u0000b\\\\u0000\\\\\\u0000")
                 "a\\u001a\\u001ab\\\\u0000\\\\\\u001a"))
  (let ((line "\\\\u0000"))
    (should (equal (duologue--without-nul line) line))))

(ert-deftest duologue-a-line-of-nuls-takes-no-longer-than-another-line ()
  (let ((start (float-time)))
    (should (equal (duologue--without-nul (apply #'concat (make-list 100000 "\\u0000")))
                   (apply #'concat (make-list 100000 "\\u001a"))))
    (should (< (- (float-time) start) 10))))

(ert-deftest duologue-what-is-no-frame-is-asked-for-again ()
  (duologue-tests--with-fake "garbage"
    (duologue-tests--type "hi")
    (let ((text (duologue-tests--wait-text "asked again")))
      (should (string-search "fine" text)))))

(ert-deftest duologue-a-line-that-is-too-long-is-dropped ()
  (duologue-tests--with-fake "overlong"
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "asked again")
    (should (string-search "a line of more than 67108864 bytes was dropped" (duologue-tests--text)))))

(ert-deftest duologue-a-long-line-is-broken-on-the-screen-and-copied-whole ()
  (duologue-tests--with-fake "long-line"
    (duologue-tests--type "hi")
    (duologue-tests--wait "the text" (lambda () (> (length (duologue-tests--text)) 3000000)))
    (duologue-tests--wait-idle)
    (with-current-buffer (duologue--chat-buffer (duologue-tests--chat))
      (goto-char (point-min))
      (search-forward "xxx")
      (end-of-line)
      (should (<= (current-column) duologue--row-max))
      (should (string-search (make-string 3000000 ?x) (filter-buffer-substring (point-min) (point-max)))))))

(ert-deftest duologue-a-long-conversation-is-drawn-without-work-that-grows-with-its-square ()
  (duologue-tests--with-fake "long"
    (let ((before cons-cells-consed))
      (duologue)
      (duologue-tests--wait-text "answer 2500\n")
      ;; 5,000 messages: a list of all of them for each one would be 12,500,000 and more.
      (should (< (- cons-cells-consed before) 5000000)))
    (let ((text (duologue-tests--text)))
      (should (string-prefix-p "You\n\nprompt 1\n\nModel\n\nanswer 1\n\nYou\n\nprompt 2\n\nModel\n\nanswer 2\n" text))
      (should (= 2500 (length (duologue--matches "^Model$" text)))))))

(ert-deftest duologue-names-of-a-provider-are-not-formats ()
  (duologue-tests--with-fake "names"
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "fine")
    (with-current-buffer (duologue--chat-buffer (duologue-tests--chat))
      (should (string-search "%%{v:lua.os.exit()}%%#Error#" (duologue--header))))))

(ert-deftest duologue-a-process-that-dies-each-time-is-not-started-without-end ()
  (duologue-tests--with-fake "counted"
    (duologue-tests--type "1")
    (duologue-tests--wait "the prompt comes back" (lambda () (equal (duologue-tests--prompt) "1")))
    (dotimes (death 3)
      (duologue-tests--wait "a process" (lambda () (and (duologue--chat-process (duologue-tests--chat))
                                                        (duologue--chat-greeted (duologue-tests--chat)))))
      (with-current-buffer (duologue--chat-prompt (duologue-tests--chat)) (duologue-send))
      (duologue-tests--wait "one more has ended"
                            (lambda () (= (+ 2 death) (duologue--chat-deaths (duologue-tests--chat))))))
    (duologue-tests--wait-text "The next prompt starts it.")
    (should-not (duologue--chat-process (duologue-tests--chat)))))

(ert-deftest duologue-an-answer-that-the-provider-withheld-is-said ()
  (duologue-tests--with-fake "withheld"
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "The provider withheld the answer, or the rest of it")))

(ert-deftest duologue-a-wrong-command-line-is-said ()
  (duologue-tests--with '("--nonsense")
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "unexpected argument '--nonsense' found")
    (duologue-tests--wait "the prompt comes back" (lambda () (equal (duologue-tests--prompt) "hi")))))

(ert-deftest duologue-a-program-that-is-missing-is-said ()
  (duologue-tests--with nil
    (let ((duologue-command '("/nowhere/duologue")))
      (duologue)
      (duologue-tests--wait-text "/nowhere/duologue can't be started"))))

(ert-deftest duologue-a-question-that-can-not-be-asked-is-put-into-the-prompt ()
  (duologue-tests--with (append duologue-tests--echo '("--max-request-bytes" "1000"))
    (let ((duologue-command '("/nowhere/duologue")))
      (with-temp-buffer
        (insert "some code")
        (transient-mark-mode 1)
        (set-mark (point-min))
        (activate-mark)
        (duologue-ask "Explain")))
    (should (string-match-p "\\`Explain\n\n.*, lines 1 to 1:\n\n```fundamental\nsome code\n```\\'"
                            (duologue-tests--prompt)))
    (with-current-buffer (duologue--prompt (duologue-tests--chat))
      (erase-buffer)
      (insert "hi"))
    (duologue-send)
    (duologue-tests--wait-text "You said: hi")
    (should-error (duologue-ask (make-string 2000 ?x)) :type 'user-error)
    (should (equal (duologue-tests--prompt) (make-string 2000 ?x)))
    (dolist (blank '("" " \n"))
      (duologue-ask blank)
      (should (equal (duologue-tests--prompt) (make-string 2000 ?x))))))

(ert-deftest duologue-a-missing-provider-is-said ()
  (duologue-tests--with nil
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "no provider is configured")))

(ert-deftest duologue-a-held-conversation-names-its-holder ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type "hi")
    (duologue-tests--wait-text "You said: hi")
    (let* ((chat (duologue-tests--chat)) (pid (duologue-tests--pid)) (duologue--chats nil))
      (duologue-resume (duologue--chat-session chat))
      (let ((text (duologue-tests--wait-text "session_locked")))
        (should (string-search (number-to-string pid) text)))
      (duologue-tests--end))))

(ert-deftest duologue-text-that-is-no-unicode-is-sent-as-replacement-characters ()
  (duologue-tests--with duologue-tests--echo
    (duologue-tests--type (concat "gr" (string (unibyte-char-to-multibyte #xfc) #xd800) "n"))
    (duologue-tests--wait-text "You said: gr\ufffd\ufffdn")))

(provide 'duologue-tests)
;;; duologue-tests.el ends here
