--- What `require("duologue").setup` may change.
local M = {}

M.defaults = {
  -- The program, or a list of the program and its first arguments.
  command = "duologue",
  -- Options of `duologue rpc` for each conversation: { "--profile", "work" }.
  options = {},
  -- The file of the conversations. nil: DUOLOGUE_STORE, else the store of `duologue chat`. false: nothing is stored.
  store = nil,
  -- Where a chat opens: "right", "left", "below", "above", "tab" or "here".
  layout = "right",
  -- Rows of the prompt's window.
  prompt_height = 6,
  -- Milliseconds without a key after which a question about a tool call may open, in the chat's windows.
  -- false: questions open with `:Duologue approve` alone.
  question_idle_ms = 1000,
  -- Keys. false leaves one out.
  keys = {
    send = "<CR>", -- normal mode, in the prompt
    send_insert = "<C-s>", -- insert and normal mode, in the prompt
    stop = "<C-c>", -- normal mode, in both buffers
    approve = "<CR>", -- normal mode, in the conversation
    write = "i", -- from the conversation to the prompt
    hide = "q", -- normal mode, in the conversation
    help = "g?", -- normal mode, in both buffers
    accept = "<C-y>", -- normal mode, while a replacement is previewed
    reject = "<C-e>",
  },
  -- What a model is told that replaces a selection.
  replace_system = "You edit text in an editor. Answer with the text that takes the place of the selection, and "
    .. "nothing else: no explanation, and no Markdown fence around it. Keep its indentation.",
}

M.values = vim.deepcopy(M.defaults)

local LAYOUTS = { right = true, left = true, below = true, above = true, tab = true, here = true }

local function is_words(value)
  return type(value) == "table" and vim.iter(value):all(function(word)
    return type(word) == "string"
  end)
end

--- Each check: the name of a value, whether it can be used, and what it must be.
local function checks(values)
  return {
    { "command", type(values.command) == "string" or (is_words(values.command) and #values.command > 0), "a program" },
    { "options", is_words(values.options), "a list of words" },
    {
      "store",
      values.store == nil or values.store == false or type(values.store) == "string",
      "a file, or false",
    },
    { "layout", LAYOUTS[values.layout] == true, "right, left, below, above, tab or here" },
    { "prompt_height", type(values.prompt_height) == "number", "a number of rows" },
    {
      "question_idle_ms",
      values.question_idle_ms == false or type(values.question_idle_ms) == "number",
      "milliseconds, or false",
    },
    { "keys", type(values.keys) == "table", "a table of keys" },
  }
end

--- Takes the person's values in; returns what is wrong with them, or nil.
function M.set(values)
  values = values or {}
  for name in pairs(values) do
    if M.defaults[name] == nil and name ~= "store" then
      return ("setup has no value %q; :help duologue-setup lists those it has"):format(name)
    end
  end
  local merged = vim.tbl_deep_extend("force", M.defaults, values)
  merged.options = values.options or M.defaults.options
  for _, check in ipairs(checks(merged)) do
    if not check[2] then
      return ("%s of setup must be %s"):format(check[1], check[3])
    end
  end
  M.values = merged
end

--- The words of a command line of duologue.
function M.command_line(...)
  local command = M.values.command
  local words = type(command) == "table" and vim.list_extend({}, command) or { vim.fn.expand(command) }
  return vim.list_extend(words, { ... })
end

--- The store of the conversations; nil if nothing is stored.
function M.store()
  if M.values.store == false then
    return nil
  end
  if M.values.store then
    return vim.fn.expand(M.values.store)
  end
  if (vim.env.DUOLOGUE_STORE or "") ~= "" then
    return vim.env.DUOLOGUE_STORE
  end
  local data = vim.env.XDG_DATA_HOME
  if (data or "") == "" then
    data = vim.fn.expand("~/.local/share")
  end
  return data .. "/duologue/sessions.db"
end

return M
