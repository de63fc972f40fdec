--- Commands of duologue that print one JSON document: what is stored, models, profiles.
local config = require("duologue.config")
local Text = require("duologue.text")

local M = {}

--- The processes that have not ended.
local alive = {}

--- Like `vim.system`, for a process that does not outlive Neovim.
function M.system(command, options, on_exit)
  local process
  process = vim.system(command, options, function(result)
    alive[process.pid] = nil
    if on_exit then
      on_exit(result)
    end
  end)
  alive[process.pid] = process
  return process
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = vim.api.nvim_create_augroup("duologue-cli", { clear = true }),
  callback = function()
    for _, process in pairs(alive) do
      if not process:is_closing() then
        process:kill("sigterm")
      end
    end
  end,
})

local function read(result)
  local is_json, document = pcall(vim.json.decode, result.stdout or "", { luanil = { object = true, array = true } })
  if is_json and type(document) == "table" then
    return document
  end
  local why = vim.trim(result.stderr or "")
  return { error = { message = why ~= "" and why or ("duologue ended with status %d"):format(result.code) } }
end

--- Runs a command in a folder, or in that of Neovim; `on_data` gets the data of its document, `on_error` its message.
function M.run(words, on_data, on_error, folder)
  local command = config.command_line(unpack(words))
  vim.list_extend(command, { "--output", "json" })
  local is_started, why = pcall(M.system, command, { text = false, stdin = "", cwd = folder }, function(result)
    vim.schedule(function()
      -- No question may come up while Neovim quits.
      if vim.v.exiting ~= vim.NIL then
        return
      end
      local document = read(result)
      if document.error and not document.data then
        on_error(Text.of_error(document.error))
      else
        on_data(document.data, document)
      end
    end)
  end)
  if not is_started then
    on_error(("%s can't be started: %s"):format(command[1], tostring(why)))
  end
end

local FILES = { "--profile-registries" }
local PROVIDER = { "--engine", "--base-url", "--profile", "--profile-registries", "--key-file", "--key-command" }
--- Options of a conversation that these commands take, too: they have to look where the conversation does.
local SHARED = { profiles = FILES, models = PROVIDER, doctor = PROVIDER }

--- A command with those of the person's options that it takes.
function M.with_options(command)
  local words, is_value = { command }, false
  for _, word in ipairs(config.values.options) do
    local is_option = not is_value and vim.list_contains(SHARED[command], word:match("^[^=]*"))
    if is_value or is_option then
      words[#words + 1] = word
    end
    is_value = is_option and not word:find("=", 1, true)
  end
  return words
end

return M
