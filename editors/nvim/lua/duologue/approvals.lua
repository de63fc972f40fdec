--- Decisions about tool calls. A question never takes a key that could be typing: it opens with a command or a key
--- of the conversation, or by itself in the windows of its conversation, in normal mode, and only when no key was
--- pressed for a while. Then a choice counts only if no key follows within the same while, and the first one decides
--- nothing.
local Chat = require("duologue.chat")
local Text = require("duologue.text")
local config = require("duologue.config")

local api = vim.api
local M = {}

local NAMESPACE = api.nvim_create_namespace("duologue-approvals")
--- The rest of the arguments is in the conversation, all of them.
local ROWS_MAX, WIDTH_MAX = 12, 160

local CHOICES = {
  { text = "Decide later" },
  { text = "Allow this call", decision = "ALLOW_ONCE" },
  { text = "Allow this tool in this conversation", decision = "ALLOW_SESSION" },
  { text = "Deny", decision = "DENY" },
  { text = "Deny, with a reason that the model reads", decision = "DENY", has_reason = true },
}

--- Calls that were put off with "Decide later" do not open by themselves again.
local put_off = {}
local timer, is_open
--- When the question opened by itself, and when the first key came after that, in milliseconds.
local opened_at, key_at

local function heading(question)
  local arguments = Text.visible(require("duologue.blocks").pretty(question.input))
  local rows = Text.lines(arguments)
  local shown = vim.iter(vim.list_slice(rows, 1, ROWS_MAX))
    :map(function(row)
      return "  " .. Text.short(row, WIDTH_MAX)
    end)
    :totable()
  if #rows > ROWS_MAX then
    shown[#shown + 1] = ("  … %d more lines, which the conversation has"):format(#rows - ROWS_MAX)
  end
  local tool, server = Text.short(question.tool, 64), Text.short(question.server, 64)
  return ("%s of %s wants to run with\n%s"):format(tool, server, table.concat(shown, "\n"))
end

local function still_waits(chat, question)
  return vim.iter(chat.view.questions):any(function(other)
    return other.id == question.id
  end)
end

local function decide(chat, question, choice)
  if not still_waits(chat, question) then
    return Chat.say(("%s waits no longer"):format(question.tool))
  end
  if choice.has_reason then
    return vim.ui.input({ prompt = "Reason: " }, function(reason)
      if reason then
        chat:decide(question, choice.decision, Text.utf8(reason))
        M.update()
      end
    end)
  end
  chat:decide(question, choice.decision)
end

--- Whether a choice is one of somebody who wrote when the question opened.
local function came_too_soon()
  return opened_at and key_at and key_at - opened_at < config.values.question_idle_ms
end

--- What the person has chosen; nil: nothing.
local function chosen(chat, question, choice)
  is_open = false
  local is_typed = came_too_soon()
  opened_at, key_at = nil, nil
  if is_typed then
    Chat.say("a key came too soon to be a decision; `:Duologue approve` asks again")
  end
  if choice and choice.decision and not is_typed then
    decide(chat, question, choice)
  else
    put_off[question.id] = true
  end
  M.update()
end

--- Opens a question.
local function open(chat, question)
  is_open = true
  local is_shown, why = pcall(vim.ui.select, CHOICES, {
    prompt = heading(question),
    kind = "duologue_approval",
    format_item = function(choice)
      return choice.text
    end,
  }, function(choice)
    -- Later: what fails in it is no failure of the list.
    vim.schedule(function()
      chosen(chat, question, choice)
    end)
  end)
  if is_shown then
    return
  end
  -- Ctrl-C in the list of Neovim itself is an error, and no choice.
  if not tostring(why):find("Keyboard interrupt", 1, true) then
    Chat.say(tostring(why), vim.log.levels.ERROR)
  end
  chosen(chat, question, nil)
end

--- Opens the question that has waited longest, for somebody who asks for it.
function M.ask(chat)
  local question = chat.view.questions[1]
  if not question then
    return Chat.say("no call waits for a decision")
  end
  opened_at, key_at = nil, nil
  open(chat, question)
end

local function next_question()
  local chat = Chat.of_buffer(api.nvim_get_current_buf())
  local question = chat and vim.iter(chat.view.questions):find(function(question)
    return not put_off[question.id]
  end)
  return chat, question
end

--- A pause in the keys: asks if the person is at the conversation and types nothing.
local function on_idle()
  local mode = api.nvim_get_mode()
  if is_open or mode.mode ~= "n" or mode.blocking or vim.fn.reg_recording() ~= "" then
    return
  end
  local chat, question = next_question()
  if question then
    opened_at, key_at = vim.uv.now(), nil
    open(chat, question)
  end
end

local function restart_timer()
  if opened_at then
    vim.uv.update_time()
    key_at = key_at or vim.uv.now()
  end
  timer:stop()
  timer:start(config.values.question_idle_ms, 0, vim.schedule_wrap(on_idle))
end

local function any_question()
  return vim.iter(pairs(Chat.all)):any(function(_, chat)
    return #chat.view.questions > 0
  end)
end

--- Keys are watched only while a question waits.
function M.update()
  if not config.values.question_idle_ms then
    return
  end
  timer = timer or vim.uv.new_timer()
  if any_question() then
    vim.on_key(restart_timer, NAMESPACE)
    restart_timer()
  else
    vim.on_key(nil, NAMESPACE)
    timer:stop()
    put_off = {}
  end
end

return M
