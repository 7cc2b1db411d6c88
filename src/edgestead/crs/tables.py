"""The vocabulary of SecLang, version 3 of the language: everything else is an error.

Owns  names of directives, variables, operators, transformations, actions and control options.
Not   their effects.

Each table maps a folded name to its canonical spelling. Source: reference manual of ModSecurity v3; the two
names that only CRS 4's other engine supports are marked.
"""


def _table(*names: str) -> dict[str, str]:
    return {name.lower(): name for text in names for name in text.split()}


# Variables that hold one value, and those that hold many under keys.
SINGLE_VARIABLES = _table(
    """ARGS_COMBINED_SIZE AUTH_TYPE DURATION FILES_COMBINED_SIZE FULL_REQUEST FULL_REQUEST_LENGTH
    HIGHEST_SEVERITY INBOUND_DATA_ERROR MATCHED_VAR MATCHED_VAR_NAME MODSEC_BUILD MSC_PCRE_LIMITS_EXCEEDED
    MULTIPART_BOUNDARY_QUOTED MULTIPART_BOUNDARY_WHITESPACE MULTIPART_CRLF_LF_LINES MULTIPART_DATA_AFTER
    MULTIPART_DATA_BEFORE MULTIPART_FILE_LIMIT_EXCEEDED MULTIPART_FILENAME MULTIPART_HEADER_FOLDING
    MULTIPART_INVALID_HEADER_FOLDING MULTIPART_INVALID_PART MULTIPART_INVALID_QUOTING MULTIPART_LF_LINE
    MULTIPART_MISSING_SEMICOLON MULTIPART_NAME MULTIPART_SEMICOLON_MISSING MULTIPART_STRICT_ERROR
    MULTIPART_UNMATCHED_BOUNDARY OUTBOUND_DATA_ERROR PATH_INFO QUERY_STRING REMOTE_ADDR REMOTE_HOST
    REMOTE_PORT REMOTE_USER REQBODY_ERROR REQBODY_ERROR_MSG REQBODY_PROCESSOR REQBODY_PROCESSOR_ERROR
    REQBODY_PROCESSOR_ERROR_MSG REQUEST_BASENAME REQUEST_BODY REQUEST_BODY_LENGTH REQUEST_FILENAME
    REQUEST_LINE REQUEST_METHOD REQUEST_PROTOCOL REQUEST_URI REQUEST_URI_RAW RESPONSE_BODY
    RESPONSE_CONTENT_LENGTH RESPONSE_CONTENT_TYPE RESPONSE_PROTOCOL RESPONSE_STATUS SERVER_ADDR SERVER_NAME
    SERVER_PORT SESSIONID STATUS_LINE TIME TIME_DAY TIME_EPOCH TIME_HOUR TIME_MIN TIME_MON TIME_SEC
    TIME_WDAY TIME_YEAR UNIQUE_ID URLENCODED_ERROR USERAGENT_IP USERID WEBAPPID"""
)
COLLECTIONS = _table(
    """ARGS ARGS_GET ARGS_GET_NAMES ARGS_NAMES ARGS_POST ARGS_POST_NAMES ENV FILES FILES_NAMES FILES_SIZES
    FILES_TMP_CONTENT FILES_TMPNAMES GEO GLOBAL IP MATCHED_VARS MATCHED_VARS_NAMES MULTIPART_PART_HEADERS
    REQUEST_COOKIES REQUEST_COOKIES_NAMES REQUEST_HEADERS REQUEST_HEADERS_NAMES RESOURCE RESPONSE_HEADERS
    RESPONSE_HEADERS_NAMES RULE SESSION TX USER XML"""
)
OPERATORS = _table(
    """beginsWith contains containsWord detectSQLi detectXSS endsWith eq ge geoLookup gt inspectFile ipMatch
    ipMatchFromFile le lt noMatch pm pmFromFile rbl rx rxGlobal streq strmatch unconditionalMatch
    validateByteRange validateUrlEncoding validateUtf8Encoding verifyCC verifyCPF verifySSN verifySVNR
    within"""
)
OPERATORS |= {"pmf": "pmFromFile", "ipmatchf": "ipMatchFromFile"}
OPERATORS_WITHOUT_ARGUMENT = frozenset(
    """detectSQLi detectXSS geoLookup noMatch unconditionalMatch validateUrlEncoding
    validateUtf8Encoding""".split()
)
NUMERIC_OPERATORS = frozenset(("eq", "ge", "gt", "le", "lt"))
FILE_OPERATORS = frozenset(("pmFromFile", "ipMatchFromFile"))
TRANSFORMATIONS = _table(
    """base64Decode base64DecodeExt base64Encode cmdLine compressWhitespace cssDecode escapeSeqDecode
    hexDecode hexEncode htmlEntityDecode jsDecode length lowercase md5 normalizePath normalizePathWin
    parityEven7bit parityOdd7bit parityZero7bit removeComments removeCommentsChar removeNulls
    removeWhitespace replaceComments replaceNulls sha1 sqlHexDecode trim trimLeft trimRight uppercase
    urlDecode urlDecodeUni urlEncode utf8toUnicode"""
)
TRANSFORMATIONS |= {"normalisepath": "normalizePath", "normalisepathwin": "normalizePathWin"}

DISRUPTIVE_ACTIONS = frozenset(("allow", "block", "deny", "drop", "pass", "proxy", "redirect"))
# Actions by whether they take a value: never, always, or may.
ACTIONS_ALONE = _table("auditlog block capture chain deny drop log multiMatch noauditlog nolog pass")
ACTIONS_WITH_VALUE = _table(
    """accuracy append ctl deprecatevar exec expirevar id initcol logdata maturity msg pause phase prepend
    proxy redirect rev sanitiseArg sanitiseMatchedBytes sanitiseRequestHeader sanitiseResponseHeader setenv
    setrsc setsid setuid setvar severity skip skipAfter status t tag ver xmlns"""
)
ACTIONS_EITHER = _table("allow sanitiseMatched")
CONTROLS = _table(
    """auditEngine auditLogParts debugLogLevel forceRequestBodyVariable requestBodyAccess requestBodyLimit
    requestBodyProcessor responseBodyAccess responseBodyLimit responseBodyProcessor ruleEngine
    ruleRemoveById ruleRemoveByMsg ruleRemoveByTag ruleRemoveTargetById ruleRemoveTargetByMsg
    ruleRemoveTargetByTag"""  # responseBodyProcessor: the engine in Go
)
# Directives that set up an engine rather than add rules: kept, not interpreted.
SETTINGS = _table(
    """
    SecArgumentSeparator SecArgumentsLimit SecAuditEngine SecAuditLog SecAuditLogDirMode SecAuditLogFileMode
    SecAuditLogFormat SecAuditLogParts SecAuditLogRelevantStatus SecAuditLogStorageDir SecAuditLogType
    SecCookieFormat SecDataDir SecDebugLog SecDebugLogLevel SecGeoLookupDb SecHttpBlKey
    SecPcreMatchLimit SecPcreMatchLimitRecursion SecRequestBodyAccess SecRequestBodyInMemoryLimit
    SecRequestBodyJsonDepthLimit SecRequestBodyLimit SecRequestBodyLimitAction
    SecRequestBodyNoFilesLimit SecResponseBodyAccess SecResponseBodyLimit SecResponseBodyLimitAction
    SecResponseBodyMimeType SecResponseBodyMimeTypesClear SecRuleEngine SecSensorId SecServerSignature
    SecStatusEngine SecTmpDir SecTmpSaveUploadedFiles SecUnicodeMapFile SecUploadDir SecUploadFileLimit
    SecUploadFileMode SecUploadKeepFiles SecWebAppId"""
)
PHASE_NAMES = {"request": 2, "response": 4, "logging": 5}
