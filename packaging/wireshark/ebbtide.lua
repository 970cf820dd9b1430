-- A post-dissector for Wireshark and tshark that follows the exchanges of CoAP messages over UDP and DTLS (RFC 7252): which
-- message is a copy of which, what mark it carries, which transmission an answer names, and what is a probe.
--
--   wireshark -X lua_script:ebbtide.lua run.pcapng       or put the file into the folder of personal Lua plugins
--   tshark -X lua_script:ebbtide.lua -r run.pcapng -Y ebbtide.copy
--
-- A capture with several interfaces, as `ebbtide replay --pcap` and `ebbtide emulate --pcap` write it, has each packet once per
-- interface. Each interface is followed by itself, so a packet that is seen at both ends is not taken for a copy.

local ebbtide = Proto("ebbtide", "CoAP transmissions")

local EXCHANGE_LIFETIME = 247 -- s (RFC 7252 section 4.8.2); a message ID has no older meaning
local CON, NON = 0, 1

local f = ebbtide.fields
f.copy = ProtoField.uint16("ebbtide.copy", "Copy", base.DEC, nil, nil, "The ordinal of this copy; the original is 0 and has no such field")
f.original = ProtoField.framenum("ebbtide.original", "Original", base.NONE, frametype.NONE, 0, "The first transmission of this message")
f.since = ProtoField.relative_time("ebbtide.since_original", "Time since the original")
f.mark = ProtoField.uint8("ebbtide.mark", "Mark", base.DEC, nil, nil, "The ordinal that the token or the option names")
f.marking = ProtoField.string("ebbtide.marking", "Marked by", base.ASCII, "token, copy-token or option")
f.answers = ProtoField.uint16("ebbtide.answers", "Answers transmission", base.DEC, nil, nil, "The transmission that the answer names by its mark; without marks, the number of those seen")
f.answered = ProtoField.framenum("ebbtide.answered", "Answered request", base.NONE, frametype.REQUEST)
f.answer_time = ProtoField.relative_time("ebbtide.time", "Time since the answered transmission")
f.probe = ProtoField.bool("ebbtide.probe", "Probe", base.NONE, nil, 0, "A CoAP ping, or the Reset that answers it")

ebbtide.prefs.option = Pref.uint("Number of Rexmit-Cnt", 65020, "The number of the option in which marks are carried, for which none is assigned")

local read = {
    type = Field.new("coap.type"), code = Field.new("coap.code"), mid = Field.new("coap.mid"), token = Field.new("coap.token"),
    interface = Field.new("frame.interface_id"), option = Field.new("coap.opt.desc"), length = Field.new("coap.opt.length"),
}

local messages, transmissions, shown -- by message ID; by token; what each frame shows

function ebbtide.init()
    messages, transmissions, shown = {}, {}, {}
end

local function bytes(field)
    local info = field()
    return info and info.len > 0 and info.range:bytes():tohex() or ""
end

-- The value of Rexmit-Cnt, whose number the dissector of CoAP does not know.
local function option_mark()
    local lengths = { read.length() }
    for at, option in ipairs({ read.option() }) do
        -- The field covers the whole option, whose value of one byte or none comes last.
        if tonumber(option.value:match("^Type (%d+)")) == ebbtide.prefs.option then
            return lengths[at].value > 0 and option.range(option.len - 1, 1):uint() or 0
        end
    end
end

-- How a copy's token differs from that of its original, and the ordinal that it names.
local function token_mark(original, copy)
    if #copy == #original + 2 and copy:sub(3) == original then
        return "copy-token", tonumber(copy:sub(1, 2), 16)
    elseif #copy == #original and copy ~= original and copy:sub(3) == original:sub(3) then
        return "token", tonumber(copy:sub(1, 2), 16)
    end
end

local function key(pinfo, is_answer, ...)
    local interface = read.interface()
    local from, to = tostring(pinfo.src) .. " " .. pinfo.src_port, tostring(pinfo.dst) .. " " .. pinfo.dst_port
    if is_answer then from, to = to, from end
    return table.concat({ interface and tostring(interface.value) or "", from, to, ... }, " ")
end

local function message(pinfo, show)
    local token, now = bytes(read.token), pinfo.abs_ts
    local id = key(pinfo, false, read.mid().value)
    local first = messages[id]
    if not first or now - first.time > EXCHANGE_LIFETIME then
        first = { frame = pinfo.number, time = now, token = token, count = 0 }
        messages[id] = first
    else
        first.count = first.count + 1
        show.copy, show.original, show.since = first.count, first.frame, now - first.time
        show.marking, show.mark = token_mark(first.token, token)
    end
    local option = option_mark()
    if option then show.marking, show.mark = "option", option end
    return first, token
end

local function request(pinfo, show)
    local first, token = message(pinfo, show)
    -- An answer with a token that all copies share names none of them: it is counted for the last one.
    local own = { frame = pinfo.number, time = pinfo.abs_ts, ordinal = show.copy or 0 }
    transmissions[key(pinfo, false, "token", token)] = own
    transmissions[key(pinfo, false, "id", read.mid().value)] = own
    first.probe = show.probe
end

local function answer(pinfo, show, own)
    if own then show.answers, show.answered, show.answer_time = own.ordinal, own.frame, pinfo.abs_ts - own.time end
end

local function follow(pinfo)
    local show = {}
    local kind, code = read.type().value, read.code().value
    local is_message = kind == CON or kind == NON
    if is_message and code == 0 then
        show.probe = true
        request(pinfo, show)
    elseif is_message and code < 32 then
        request(pinfo, show)
    elseif code == 0 then
        local own = transmissions[key(pinfo, true, "id", read.mid().value)]
        local asked = messages[key(pinfo, true, read.mid().value)]
        if asked and asked.probe then show.probe = true end
        answer(pinfo, show, own)
    else
        -- Responses in messages of their own have copies as well. One in an acknowledgement may carry Rexmit-Cnt back.
        if is_message then
            message(pinfo, show)
        else
            show.mark = option_mark()
            show.marking = show.mark and "option"
        end
        answer(pinfo, show, transmissions[key(pinfo, true, "token", bytes(read.token))])
    end
    return show
end

local function time(seconds)
    return NSTime.new(math.floor(seconds), math.floor((seconds % 1) * 1e9 + 0.5))
end

function ebbtide.dissector(buffer, pinfo, tree)
    -- Over TCP there are neither message IDs nor copies.
    if not read.mid() or not read.type() then return end
    -- Frames are seen in their order the first time only.
    shown[pinfo.number] = shown[pinfo.number] or follow(pinfo)
    local show = shown[pinfo.number]
    if not next(show) then return end
    local branch = tree:add(ebbtide)
    for _, name in ipairs({ "copy", "original", "marking", "mark", "answers", "answered", "probe" }) do
        if show[name] ~= nil then branch:add(f[name], show[name]):set_generated() end
    end
    if show.since then branch:add(f.since, time(show.since)):set_generated() end
    if show.answer_time then branch:add(f.answer_time, time(show.answer_time)):set_generated() end
    if show.copy then branch:append_text(", copy " .. show.copy) end
    if show.probe then branch:append_text(", probe") end
end

register_postdissector(ebbtide)
