--- `:checkhealth duologue`.
local cli = require("duologue.cli")
local config = require("duologue.config")

local M = {}

local SECONDS_MAX = 30

local function run(...)
  local command = config.command_line(...)
  local is_started, process = pcall(cli.system, command, { stdin = "" })
  if not is_started then
    return nil
  end
  return process:wait(SECONDS_MAX * 1000)
end

--- Returns whether the program is there.
local function check_program()
  local health, program = vim.health, config.command_line()[1]
  local result = run("--version")
  if not result then
    health.error(("%s is not found"):format(program), {
      "Install duologue, so that it is in the PATH that Neovim sees.",
      'Or name it: require("duologue").setup({ command = "/path/to/duologue" })',
    })
    return false
  elseif result.code ~= 0 then
    health.error(("%s ended with status %d: %s"):format(program, result.code, vim.trim(result.stderr or "")))
    return false
  end
  health.ok(("%s, %s"):format(vim.trim(result.stdout), vim.fn.exepath(program)))
  return true
end

local function check_provider()
  local words = cli.with_options("doctor")
  local result = run(unpack(vim.list_extend(words, { "--output", "json" })))
  local is_json, document = pcall(vim.json.decode, result and result.stdout or "", { luanil = { object = true } })
  if not is_json then
    return vim.health.warn("duologue doctor could not be run: " .. vim.trim(result and result.stderr or ""))
  end
  for _, check in ipairs(document.data or {}) do
    local text = ("%s: %s"):format(check.check, check.found)
    if check.ok then
      vim.health.ok(text)
    else
      vim.health.warn(text)
    end
  end
end

function M.check()
  vim.health.start("duologue")
  if vim.fn.has("nvim-0.10") == 1 then
    vim.health.ok("Neovim 0.10 or later")
  else
    vim.health.error("Neovim 0.10 or later is needed")
  end
  if not check_program() then
    return
  end
  vim.health.info("conversations are stored in " .. (config.store() or "nothing: `store` of setup is false"))
  check_provider()
end

return M
